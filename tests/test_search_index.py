"""What a library of documents promises: find, read, stay fresh, and never leave its folder."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.errors import SearchError, ToolError
from core.search import DocIndex, Progress
from tests.support_search import RESUME_CENTER, write_files


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[DocIndex]:
    root = write_files(tmp_path / "docs", RESUME_CENTER)
    async with DocIndex(root, tmp_path / "data") as index:
        yield index


async def test_a_question_finds_the_passage_that_answers_it(library: DocIndex) -> None:
    hits = await library.search("What should I put at the top of my resume?", 3)
    assert hits[0].passage.path == "resume-summary.md"
    assert hits[0].passage.title == "Writing a resume summary"
    assert hits[0].passage.heading == "Where it goes"
    assert hits[0].passage.line == 8
    assert hits[0].is_good
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(0 < hit.score <= 1 for hit in hits)


@pytest.mark.parametrize(
    "question",
    [
        "What is the capital of France?",
        "How tall is Mount Everest?",
        "Which planets have rings?",
        "How do I bake sourdough bread?",
        "Who won the world cup in 1998?",
    ],
)
async def test_a_question_off_the_topic_gets_no_good_hit(library: DocIndex, question: str) -> None:
    assert not any(hit.is_good for hit in await library.search(question, 3))


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("Can the parser read tables and columns?", "ats-parsing.md"),
        ("how should I answer when they ask about salary", "interviews/salary.md"),
        ("When do you delete my uploaded resume?", "privacy.txt"),
        ("scanned PDF", "ats-parsing.md"),
    ],
)
async def test_a_real_question_gets_a_good_hit(library: DocIndex, question: str, path: str) -> None:
    first = (await library.search(question, 3))[0]
    assert (first.passage.path, first.is_good) == (path, True)


@pytest.mark.parametrize("query", ["", "???", "how do I", "zyxwvut", "\x00", "a" * 9_000])
async def test_nothing_to_find_is_an_empty_answer(library: DocIndex, query: str) -> None:
    assert list(await library.search(query, 3)) == []


async def test_k_bounds_the_answer(library: DocIndex) -> None:
    assert len(await library.search("resume", 2)) == 2
    assert list(await library.search("resume", 0)) == []


async def test_read_gives_the_part_asked_for(library: DocIndex) -> None:
    whole = await library.read("resume-summary.md", 1, 10_000)
    assert whole.text == RESUME_CENTER["resume-summary.md"].rstrip("\n")
    assert (whole.line, whole.total_lines, whole.is_cut) == (1, 13, False)
    part = await library.read("resume-summary.md", 6, 60)
    assert part.text == "## Where it goes\n"
    assert (part.line, part.is_cut) == (6, True)


async def test_a_line_longer_than_allowed_is_cut_inside(tmp_path: Path) -> None:
    root = write_files(tmp_path / "docs", {"long.txt": "word " * 1_000})
    async with DocIndex(root, tmp_path / "data") as index:
        part = await index.read("long.txt", 1, 100)
    assert (len(part.text), part.is_cut) == (100, True)


async def test_a_wrong_path_is_answered_with_near_ones(library: DocIndex) -> None:
    with pytest.raises(ToolError, match=r"Did you mean: interviews/salary\.md"):
        await library.read("docs/salaries.md", 1, 100)
    with pytest.raises(ToolError, match="has 13 lines"):
        await library.read("resume-summary.md", 99, 100)


@pytest.mark.parametrize(
    "path", ["../secret.md", "/etc/hostname", "interviews/../../secret.md", "link.md", "~/x.md"]
)
async def test_read_never_leaves_the_folder(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.md").write_text("# Secret\n\nswordfish\n")
    root = write_files(tmp_path / "docs", RESUME_CENTER)
    (root / "link.md").symlink_to(tmp_path / "secret.md")
    async with DocIndex(root, tmp_path / "data") as index:
        with pytest.raises(ToolError) as caught:
            await index.read(path, 1, 100)
        assert list(await index.search("swordfish", 3)) == []
        report = await index.refresh()
    assert "swordfish" not in str(caught.value)
    assert [(item.path, "outside" in item.reason) for item in report.skipped] == [("link.md", True)]


async def test_hidden_and_unlisted_files_are_not_read(tmp_path: Path) -> None:
    root = write_files(
        tmp_path / "docs",
        {"a.md": "# A\n\nOne.\n", ".env": "KEY=swordfish\n", "pyproject.toml": "[project]\n"},
    )
    async with DocIndex(root, tmp_path / "data") as index:
        with pytest.raises(ToolError) as hidden:
            await index.read(".env", 1, 100)
        with pytest.raises(ToolError, match=r"type that is not read here.*\.md"):
            await index.read("pyproject.toml", 1, 100)
    assert "swordfish" not in str(hidden.value)
    async with DocIndex(root, tmp_path / "data", include="*.toml") as index:
        assert (await index.read("pyproject.toml", 1, 100)).text == "[project]"
        assert (await index.search("project", 1))[0].passage.title == "pyproject.toml"


async def test_a_missing_or_empty_folder_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(SearchError, match="DOCS_PATH names a folder that does not exist"):
        await DocIndex(tmp_path / "none", tmp_path / "data").open()
    (tmp_path / "empty").mkdir()
    with pytest.raises(SearchError, match="no readable documents"):
        await DocIndex(tmp_path / "empty", tmp_path / "data").open()
    (tmp_path / "file.md").write_text("x")
    with pytest.raises(SearchError, match="this is a file"):
        await DocIndex(tmp_path / "file.md", tmp_path / "data").open()


async def test_refresh_takes_in_what_changed_and_nothing_else(tmp_path: Path) -> None:
    root = write_files(tmp_path / "docs", RESUME_CENTER)
    async with DocIndex(root, tmp_path / "data") as index:
        write_files(root, {"new.md": "# Badges\n\nWear your badge.\n"})
        write_files(root, {"privacy.txt": "Resumes stay for 90 fortnights.\n"})
        (root / "interviews/salary.md").unlink()
        seen: list[Progress] = []
        report = await index.refresh(seen.append)
        assert (report.added, report.changed, report.deleted, report.unchanged) == (1, 1, 1, 2)
        assert seen[-1].done == seen[-1].total
        assert (await index.search("badge", 3))[0].passage.path == "new.md"
        assert (await index.search("fortnights", 3))[0].passage.path == "privacy.txt"
        assert list(await index.search("salary", 3)) == []
        assert list(await index.search("deletion settings page", 3)) == []


async def test_an_unchanged_folder_is_not_read_again(tmp_path: Path) -> None:
    root = write_files(tmp_path / "docs", RESUME_CENTER)
    async with DocIndex(root, tmp_path / "data") as index:
        assert (await index.refresh()).unchanged == 4
    async with DocIndex(root, tmp_path / "data") as again:
        report = await again.refresh()
        assert (report.added, report.changed, report.deleted, report.unchanged) == (0, 0, 0, 4)
        assert (await again.search("salary", 1))[0].passage.path == "interviews/salary.md"
