"""read_doc: a document, or part of it, by the path that search_docs gave."""

from pydantic import BaseModel, ConfigDict, Field

from core.protocols import Hit, Library, Passage, Tool, ToolContext, ToolResult
from core.tools import define_tool

MAX_CHARS = 5_000


class ReadDoc(BaseModel):
    model_config = ConfigDict(extra="forbid")
    path: str = Field(description="The document's path, as search_docs or the user gave it.")
    start_line: int = Field(default=1, description="The first line to read; 1 is the beginning.")


def make_read_doc(library: Library) -> Tool:
    """The tool over `library`. A part longer than MAX_CHARS is cut at a line, and says so."""

    async def run(arguments: ReadDoc, context: ToolContext) -> ToolResult:
        path = arguments.path.split("#", 1)[0].strip()
        start = max(1, arguments.start_line)
        document = await library.read(path, start, MAX_CHARS)
        passage = Passage(
            path=document.path,
            title=document.title,
            heading=f"from line {document.line}" if document.line > 1 else document.title,
            text=document.text,
            line=document.line,
            url=document.url,
        )
        note = ""
        if document.is_cut:
            following = document.line + document.text.count("\n") + 1
            note = (
                f"This is a part of the document, which has {document.total_lines} lines; "
                f"call read_doc with start_line {following} for more."
            )
        return ToolResult(text=note, hits=(Hit(passage, 0.0, is_good=False),))

    return define_tool(
        "read_doc",
        "Reads a document, or the part from start_line on, by its path. Use it when a passage "
        "from search_docs is promising but not enough, or when the user names a file. It reads "
        "only the team's documents; a path that does not exist is an error that names close ones.",
        ReadDoc,
        run,
        shown="path",
    )
