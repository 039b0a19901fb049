"""Search by meaning: what it adds, what it costs, and that its failure is no outage."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from core.search import DocIndex, Progress
from core.search.vectors import VectorCache
from tests.support import wait_until
from tests.support_meaning import DIMS, ScriptedEmbedder
from tests.support_search import paths, write_files

FILES = {
    "leave.md": "# Time away\n\nEvery year has thirty holidays for everyone.\n",
    "desk.md": "# Desks\n\nA desk is booked in the calendar for a day.\n",
    "badge.md": "# Badges\n\nWear your badge; vacation rules are elsewhere.\n",
}


@pytest.fixture
def embedder() -> ScriptedEmbedder:
    return ScriptedEmbedder({"holiday": 1, "vacation days": 1, "desk": 2, "badge": 3})


@pytest.fixture
async def index(tmp_path: Path, embedder: ScriptedEmbedder) -> AsyncIterator[DocIndex]:
    root = write_files(tmp_path / "docs", FILES)
    async with DocIndex(root, tmp_path / "data", embedder=embedder) as opened:
        yield opened


async def test_meaning_finds_what_no_word_does(index: DocIndex) -> None:
    assert set(await paths(index, "vacation days")) == {"badge.md", "desk.md"}
    assert await index.embed()
    first, *others = await index.search("vacation days", 3)
    assert (first.passage.path, first.is_good) == ("leave.md", True)
    assert not any(hit.is_good for hit in others)


async def test_words_answer_while_vectors_are_being_made(
    index: DocIndex, embedder: ScriptedEmbedder
) -> None:
    embedder.gate.clear()
    seen: list[Progress] = []
    embedding = asyncio.create_task(index.embed(seen.append))

    async def has_begun() -> bool:
        return bool(seen)

    await wait_until(has_begun)
    assert (await paths(index, "desk"))[0] == "desk.md"
    assert not embedding.done()
    embedder.gate.set()
    assert await embedding
    assert (seen[0].stage, seen[0].done, seen[0].total) == ("embedding", 0, 3)
    assert (seen[-1].done, seen[-1].total) == (3, 3)


async def test_vectors_are_made_in_the_background(index: DocIndex) -> None:
    async def has_meaning() -> bool:
        return (await paths(index, "vacation days"))[0] == "leave.md"

    await wait_until(has_meaning)


async def test_an_embedder_that_is_down_is_no_outage_and_logged_once(
    tmp_path: Path, embedder: ScriptedEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    root = write_files(tmp_path / "docs", FILES)
    async with DocIndex(root, tmp_path / "data", embedder=embedder) as index:
        await index.embed()
        embedder.is_down = True
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                assert (await paths(index, "desk"))[0] == "desk.md"
                assert not await index.embed() or embedder.is_down
        assert [record.getMessage() for record in caplog.records] == [
            "searching by words alone: the model is on strike"
        ]
        embedder.is_down = False
        assert (await paths(index, "vacation days"))[0] == "leave.md"


async def test_an_unchanged_passage_is_never_embedded_twice(
    tmp_path: Path, embedder: ScriptedEmbedder
) -> None:
    root = write_files(tmp_path / "docs", FILES)
    async with DocIndex(root, tmp_path / "data", embedder=embedder) as index:
        await index.embed()
        assert len(embedder.texts) == 3
        (root / "leave.md").rename(root / "away.md")
        write_files(root, {"new.md": "# Doors\n\nLocked at six.\n", "desk.md": FILES["desk.md"]})
        await index.refresh()
        await index.embed()
        assert embedder.texts[3:] == ["Doors\nLocked at six."]
        assert (await paths(index, "vacation days"))[0] == "away.md"
    async with DocIndex(root, tmp_path / "data", embedder=embedder) as again:
        await again.embed()
    assert len(embedder.texts) == 5, "four passages and one question"


async def test_a_passage_without_a_vector_is_judged_by_its_words(
    tmp_path: Path, embedder: ScriptedEmbedder
) -> None:
    root = write_files(tmp_path / "docs", FILES)
    async with DocIndex(root, tmp_path / "data", embedder=embedder) as index:
        await index.embed()
        embedder.gate.clear()
        write_files(root, {"new.md": "# Standing desks\n\nA standing desk goes up and down.\n"})
        await index.refresh()
        embedder.gate.set()
        assert (await paths(index, "standing desk"))[0] == "new.md"


async def test_a_passage_in_a_language_the_model_does_not_know_is_judged_by_its_words(
    tmp_path: Path, embedder: ScriptedEmbedder
) -> None:
    files = {**FILES, "de.md": "# Tisch\n\nunverständlich, aber mit desk darin.\n"}
    root = write_files(tmp_path / "docs", files)
    async with DocIndex(root, tmp_path / "data", embedder=embedder) as index:
        assert await index.embed()
        assert await index.embed()
        assert len(embedder.texts) == 3
        assert set(await paths(index, "desk")) == {"desk.md", "de.md"}
        assert await paths(index, "unverständlich desk") == ["de.md", "desk.md"]
        assert len(embedder.texts) == 4, "one of the two questions"


async def test_deleted_text_is_not_found_by_its_meaning(
    tmp_path: Path, embedder: ScriptedEmbedder
) -> None:
    root = write_files(tmp_path / "docs", FILES)
    async with DocIndex(root, tmp_path / "data", embedder=embedder) as index:
        await index.embed()
        (root / "leave.md").unlink()
        await index.refresh()
        assert "leave.md" not in await paths(index, "vacation days")


async def test_one_process_embeds_and_the_other_follows(
    tmp_path: Path, embedder: ScriptedEmbedder
) -> None:
    root = write_files(tmp_path / "docs", FILES)
    other = ScriptedEmbedder({"holiday": 1, "vacation days": 1})
    async with (
        DocIndex(root, tmp_path / "data", embedder=embedder) as first,
        DocIndex(root, tmp_path / "data", embedder=other) as second,
    ):
        embedder.gate.clear()
        one = asyncio.create_task(first.embed())
        two = asyncio.create_task(second.embed())
        embedder.gate.set()
        assert await one
        assert await two
        assert len(embedder.texts) + len(other.texts) == 3
        assert (await paths(second, "vacation days"))[0] == "leave.md"


async def test_embedding_stops_when_cancelled_and_goes_on_later(
    index: DocIndex, embedder: ScriptedEmbedder
) -> None:
    embedder.gate.clear()
    seen: list[Progress] = []
    embedding = asyncio.create_task(index.embed(seen.append))

    async def has_begun() -> bool:
        return bool(seen)

    await wait_until(has_begun)
    embedding.cancel()
    embedder.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await embedding
    assert await index.embed()
    assert len(embedder.texts) == 3


def test_a_tail_that_a_crash_left_is_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "x.vec"
    cache = VectorCache(file, DIMS)
    rows = np.eye(4, DIMS, dtype=np.float32)
    cache.append([11, 12], rows[:2])
    whole = file.read_bytes()
    file.write_bytes(whole[:-7])
    assert list(VectorCache(file, DIMS).table().keys) == [11]
    cache.append([13, 14], rows[2:])
    table = VectorCache(file, DIMS).table()
    assert list(table.keys) == [11, 13, 14]
    assert list(table.find([14, 12, 11])) == [2, -1, 0]
    assert table.nearest(rows[2], 1, 0.5) == [13]


@pytest.mark.parametrize("content", [b"", b"FOOT", b"something else entirely" * 9])
def test_a_file_of_another_kind_is_replaced(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.vec"
    file.write_bytes(content)
    cache = VectorCache(file, DIMS)
    assert len(cache.table()) == 0
    cache.append([5], np.eye(1, DIMS, dtype=np.float32))
    assert list(cache.table().keys) == [5]


def test_vectors_keep_their_cosines_in_eight_bits(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(3_000, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cache = VectorCache(tmp_path / "x.vec", 384)
    cache.append(list(range(1, 3_001)), rows)
    found = cache.table().cosines(list(range(1, 3_001)), rows[5])
    assert np.abs(np.array(found, np.float32) - rows @ rows[5]).max() < 0.005


def test_the_nearest_of_many_are_found_without_looking_closely_at_all(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    centers = rng.normal(size=(50, 384))
    rows = (centers[rng.integers(0, 50, 12_000)] + rng.normal(size=(12_000, 384))).astype(
        np.float32
    )
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cache = VectorCache(tmp_path / "x.vec", 384)
    cache.append(list(range(1, 8_001)), rows[:8_000])
    assert len(cache.table()) == 8_000
    cache.append(list(range(8_001, 12_001)), rows[8_000:])
    table = cache.table()
    recall = 0.0
    for at in range(0, 12_000, 1_200):
        exact = {int(row) + 1 for row in np.argsort(-(rows @ rows[at]))[:100]}
        near = set(table.nearest(rows[at], 100, 0.0))
        assert at + 1 in near
        recall += len(exact & near) / 1_000
    assert recall > 0.97


def test_a_cache_of_mostly_dead_rows_is_compacted(tmp_path: Path) -> None:
    file = tmp_path / "x.vec"
    cache = VectorCache(file, DIMS)
    rows = np.tile(np.eye(1, DIMS, dtype=np.float32), (2_000, 1))
    cache.append(list(range(1, 2_001)), rows)
    assert not cache.compact(list(range(1, 1_500)))
    before = cache.table()
    assert cache.compact(list(range(1, 301)))
    assert len(cache.table()) == 300
    assert len(before.nearest(rows[0], 5_000, 0.5)) == 2_000, "a search under way keeps its state"
    assert file.stat().st_size < 30_000
