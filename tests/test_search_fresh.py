"""Always current: the watch, what a search sees meanwhile, several processes, a crash."""

import asyncio
import os
import shutil
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from core.search import DocIndex
from tests.support import wait_until
from tests.support_search import paths, write_files


def notes(root: Path, count: int) -> Path:
    return write_files(
        root, {f"part{n % 10}/note{n}.md": f"# Note {n}\n\ncommon w{n}\n" for n in range(count)}
    )


@asynccontextmanager
async def watched(root: Path, data: Path) -> AsyncIterator[DocIndex]:
    async with DocIndex(root, data, by_words_only=True) as index:
        watch = asyncio.create_task(index.watch())
        try:
            yield index
        finally:
            watch.cancel()
            with pytest.raises(asyncio.CancelledError):
                await watch


async def test_changes_in_a_thousand_files_are_in_or_out_within_two_seconds(
    tmp_path: Path,
) -> None:
    root = notes(tmp_path / "docs", 1_000)
    async with watched(root, tmp_path / "data") as index:

        async def is_watching() -> bool:
            write_files(root, {"first.md": "# First\n\nfirstword\n"})
            return bool(await paths(index, "firstword"))

        await wait_until(is_watching, 30)
        started = time.monotonic()
        write_files(root, {"new/deep/added.md": "# Added\n\naddedword\n"})
        write_files(root, {"part1/note1.md": "# Note 1\n\nchangedword\n"})
        (root / "part2/note2.md").unlink()
        (root / "part3/note3.md").rename(root / "part3/renamed.md")

        async def is_current() -> bool:
            return (
                await paths(index, "addedword") == ["new/deep/added.md"]
                and await paths(index, "changedword") == ["part1/note1.md"]
                and await paths(index, "w1") == []
                and await paths(index, "w2") == []
                and await paths(index, "w3") == ["part3/renamed.md"]
            )

        await wait_until(is_current)
        assert time.monotonic() - started < 10


async def test_a_folder_that_goes_and_comes_back_is_followed(tmp_path: Path) -> None:
    root = write_files(tmp_path / "docs", {"a.md": "# A\n\nfirstword\n"})
    async with watched(root, tmp_path / "data") as index:
        root.rename(tmp_path / "old")
        write_files(root, {"b.md": "# B\n\nsecondword\n"})

        async def is_current() -> bool:
            return await paths(index, "secondword") == ["b.md"]

        await wait_until(is_current, 30)
        assert await paths(index, "firstword") == []


async def test_a_link_that_is_led_to_another_folder_is_followed(tmp_path: Path) -> None:
    write_files(tmp_path / "v1", {"a.md": "# A\n\nfirstword\n"})
    write_files(tmp_path / "v2", {"a.md": "# A\n\nsecondword\n", "b.md": "# B\n\nmore\n"})
    (tmp_path / "docs").symlink_to("v1")
    async with watched(tmp_path / "docs", tmp_path / "data") as index:
        (tmp_path / "next").symlink_to("v2")
        (tmp_path / "next").replace(tmp_path / "docs")

        async def is_current() -> bool:
            return await paths(index, "secondword") == ["a.md"]

        await wait_until(is_current, 30)
        assert (await index.read("b.md", 1, 100)).text == "# B\n\nmore"


async def test_a_search_during_a_refresh_sees_old_or_new(tmp_path: Path) -> None:
    root = tmp_path / "docs"
    old = "\n\n".join(f"## Part {n}\n\nquartz old{n} {'filler ' * 60}" for n in range(5))
    write_files(root, {"shrinks.md": f"# Shrinks\n\n{old}\n"})
    write_files(root, {"deleted.md": "# Deleted\n\nquartz gone\n"})
    write_files(root, {"named.md": "# Named\n\nquartz named\n"})
    write_files(root, {f"other{n}.md": f"# Other {n}\n\nnothing\n" for n in range(300)})
    async with DocIndex(root, tmp_path / "data", by_words_only=True) as index:
        before = frozenset(hit.passage.text for hit in await index.search("quartz", 50))
        assert len(before) == 7
        seen: set[frozenset[str]] = set()
        done = asyncio.Event()

        async def ask() -> None:
            while not done.is_set():
                hits = await index.search("quartz", 50)
                texts = [hit.passage.text for hit in hits]
                assert len(texts) == len(set(texts)), "a passage twice"
                seen.add(frozenset(texts))
                await asyncio.sleep(0.01)

        asking = asyncio.create_task(ask())
        write_files(root, {"shrinks.md": "# Shrinks\n\nquartz short\n"})
        (root / "deleted.md").unlink()
        (root / "named.md").rename(root / "renamed.md")
        write_files(root, {f"other{n}.md": f"# Other {n}\n\nchanged\n" for n in range(300)})
        report = await index.refresh()
        hits = await index.search("quartz", 50)
        done.set()
        await asking
        after = frozenset(hit.passage.text for hit in hits)
    assert (report.added, report.changed, report.deleted) == (1, 301, 2)
    assert after == {"quartz short", "quartz named"}
    assert {hit.passage.path for hit in hits} == {"shrinks.md", "renamed.md"}
    assert seen <= {before, after}
    assert before in seen


async def test_a_cancelled_refresh_changes_nothing_and_frees_the_index(tmp_path: Path) -> None:
    root = notes(tmp_path / "docs", 100)
    async with DocIndex(root, tmp_path / "data", by_words_only=True) as index:
        write_files(root, {f"part0/more{n}.md": f"# M\n\nm{n}\n" for n in range(600)})
        begun = asyncio.Event()
        refreshing = asyncio.create_task(index.refresh(lambda _: begun.set()))
        await begun.wait()
        refreshing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await refreshing
        assert await paths(index, "m599") == []
        assert (await index.refresh()).added == 600
        assert await paths(index, "m599") == ["part0/more599.md"]


async def test_two_that_open_at_once_share_one_index(tmp_path: Path) -> None:
    root = notes(tmp_path / "docs", 200)
    indexes = [DocIndex(root, tmp_path / "data", by_words_only=True) for _ in range(3)]
    await asyncio.gather(*(index.open() for index in indexes))
    for index in indexes:
        assert await paths(index, "w7") == ["part7/note7.md"]
    write_files(root, {"new.md": "# New\n\nnewword\n"})
    await indexes[0].refresh()
    assert await paths(indexes[1], "newword") == ["new.md"]
    assert (await indexes[1].read("new.md", 1, 100)).title == "New"
    for index in indexes:
        await index.close()


async def start(command: str, root: Path, data: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.search_worker",
        command,
        str(root),
        str(data),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parent.parent,
    )


async def line_of(process: asyncio.subprocess.Process) -> str:
    assert process.stdout
    async with asyncio.timeout(30):
        return (await process.stdout.readline()).decode().strip()


async def test_readers_beside_a_writer_that_is_killed_see_whole_states(tmp_path: Path) -> None:
    root, data = tmp_path / "docs", tmp_path / "data"
    write_files(root, {f"n{n}.md": f"# n{n}\n\nsteady {'filler ' * 30}\n" for n in range(60)})
    async with DocIndex(root, data, by_words_only=True):
        pass
    reader = await start("count", root, data)
    assert await line_of(reader) == "open"
    counts: set[str] = set()
    for turns in (1, 2, 1):
        writer = await start("write", root, data)
        for _ in range(turns):
            await line_of(writer)
            assert reader.stdin
            reader.stdin.write(b"\n")
            counts.add(await line_of(reader))
        # Somewhere in its next turn.
        writer.kill()
        await writer.wait()
        assert reader.stdin
        reader.stdin.write(b"\n")
        counts.add(await line_of(reader))
    assert reader.stdin
    reader.stdin.close()
    await reader.wait()
    assert counts == {"60"}
    async with DocIndex(root, data, by_words_only=True) as index:
        assert len(await index.search("steady", 1_000)) == 60
        report = await index.refresh()
        assert (report.is_follower, report.unchanged) == (False, 60)


async def test_a_damaged_index_is_built_again(tmp_path: Path) -> None:
    root = write_files(tmp_path / "docs", {"a.md": "# A\n\nfirstword\n"})
    async with DocIndex(root, tmp_path / "data", by_words_only=True):
        pass
    (meta,) = (tmp_path / "data").rglob("meta.json")
    meta.write_text('{"segments": [')
    async with DocIndex(root, tmp_path / "data", by_words_only=True) as index:
        assert await paths(index, "firstword") == ["a.md"]


async def test_a_file_rewritten_within_one_tick_is_noticed(tmp_path: Path) -> None:
    root = write_files(tmp_path / "docs", {"a.md": "# A\n\nfirstword\n"})
    async with DocIndex(root, tmp_path / "data", by_words_only=True) as index:
        status = (root / "a.md").stat()
        write_files(root, {"a.md": "# A\n\nothertext\n"})
        os.utime(root / "a.md", ns=(status.st_atime_ns, status.st_mtime_ns))
        assert (await index.refresh()).changed == 1
        assert await paths(index, "othertext") == ["a.md"]


async def test_cleared_data_does_not_stop_the_answers(tmp_path: Path) -> None:
    root = write_files(tmp_path / "docs", {"a.md": "# A\n\nfirstword\n"})
    async with DocIndex(root, tmp_path / "data", by_words_only=True) as index:
        shutil.rmtree(tmp_path / "data")
        assert await paths(index, "firstword") == ["a.md"]
    async with DocIndex(root, tmp_path / "data", by_words_only=True) as again:
        assert await paths(again, "firstword") == ["a.md"]
