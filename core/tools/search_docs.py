"""search_docs: the passages of the team's documents that match a question."""

from pydantic import BaseModel, ConfigDict, Field

from core.errors import ToolError
from core.protocols import Library, Tool, ToolContext, ToolResult
from core.tools import define_tool
from core.transcript import WEAK_MATCH

NOTHING_FOUND = (
    "Nothing in the documents matches. Try once with other words (synonyms, the singular, the "
    "term that a manual would use). If that finds nothing either, say that the documents do not "
    "cover it; do not answer from general knowledge."
)


class SearchDocs(BaseModel):
    model_config = ConfigDict(extra="forbid")
    query: str = Field(description="What to look for, in the user's words and language.")


def make_search_docs(library: Library, results: int) -> Tool:
    """The tool over `library`, giving at most `results` passages."""

    async def run(arguments: SearchDocs, context: ToolContext) -> ToolResult:
        if not arguments.query.strip():
            raise ToolError("query is empty: give the words to look for.")
        hits = tuple(await library.search(arguments.query, results))
        if not hits:
            return ToolResult(text=NOTHING_FOUND)
        is_weak = not any(hit.is_good for hit in hits)
        return ToolResult(text=WEAK_MATCH if is_weak else "", hits=hits)

    return define_tool(
        "search_docs",
        "Searches the team's own documents and returns the best matching passages with their "
        "source. Use it before you answer any question of fact, also for a follow-up about "
        "something new. One question about several things: call it several times at once, one "
        "topic each. Do not repeat a search with the same words; if the passages only touch the "
        "subject, read more of that document with read_doc.",
        SearchDocs,
        run,
        shown="query",
    )
