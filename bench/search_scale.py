"""How search holds at a size: time to index, disk, memory, time of a question and of a change.

The passages are words of the model's own vocabulary, with frequencies like those of a language, and
their vectors are random: neither the time nor the memory of a search depends on what they say, and
embedding 100,000 passages takes an hour. Each question's own vector is made by the real model. The
questions run in a process of their own, whose memory is what a bot would take.

    python -m bench.search_scale ROOT DATA QUESTIONS   (the inner process)
"""

import asyncio
import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any

import numpy as np

from core.search import DocIndex
from core.search.embedder import MiniLM, Vectors, unit
from core.search.wordpiece import VOCABULARY

PASSAGES_A_FILE = 10
_WORDS = 30_000
_BODY_WORDS = 95
_CHANGES = 5


class RandomVectors:
    """The real model for a question, random vectors for passages."""

    def __init__(self, cache: Path) -> None:
        self._model = MiniLM(cache)
        self._random = np.random.default_rng(3)
        self.id, self.dims, self.step = "random-1", self._model.dims, 1_024
        self.good, self.least = self._model.good, -1.0
        self.understands = self._model.understands

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of length 1 for each text."""
        if len(texts) == 1:
            return self._model.embed(texts)
        return unit(self._random.normal(size=(len(texts), self.dims)).astype(np.float32))


def write_documents(root: Path, passages: int) -> list[str]:
    """Files of ten passages of about 100 words under `root`; gives the vocabulary."""
    numbers = np.random.default_rng(1)
    # real words: made-up ones fall into many pieces, which the model takes twice as long to read
    listed = VOCABULARY.read_text(encoding="utf-8").splitlines()
    known = [word for word in listed if word.isalpha() and word.isascii() and len(word) > 2]
    words = random.Random(3).sample(known, min(_WORDS, len(known)))
    odds = 1 / np.arange(1, len(words) + 1) ** 0.9
    odds /= odds.sum()

    def text(count: int) -> str:
        return " ".join(words[at] for at in numbers.choice(len(words), count, p=odds))

    for number in range(passages // PASSAGES_A_FILE):
        file = root / f"part{number % 100}" / f"note{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        sections = [f"## {text(3)}\n\n{text(_BODY_WORDS)}." for _ in range(PASSAGES_A_FILE)]
        file.write_text("\n\n".join([f"# {text(3)}", *sections]) + "\n")
    return words


async def measure(home: Path, passages: int, questions: int) -> dict[str, Any]:
    """The figures at `passages`, made in `home`, which is emptied first."""
    shutil.rmtree(home, ignore_errors=True)
    root, data = home / "docs", home / "data"
    words = write_documents(root, passages)
    index = DocIndex(root, data, embedder=RandomVectors(data / "models"))
    report = await index.open()
    async with index:
        assert await index.embed()
    disk = sum(file.stat().st_size for file in data.rglob("*") if file.is_file())
    asked = random.Random(5)
    lines = [" ".join(asked.choices(words[:3_000], k=6)) for _ in range(questions)]
    inner = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "bench.search_scale", str(root), str(data)],
        input="\n".join(lines),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=Path(__file__).resolve().parents[1],
    )
    return {
        "passages": report.passages,
        "index_s": round(report.duration_ms / 1_000, 1),
        "disk_mb": round(disk / 1e6, 1),
        **json.loads(inner.stdout),
    }


async def ask(root: Path, data: Path, questions: Sequence[str]) -> dict[str, float]:
    """The times of `questions` and of single changes, and the memory at the end."""
    started = time.perf_counter()
    index = DocIndex(root, data, embedder=RandomVectors(data / "models"))
    await index.open()
    open_ms = (time.perf_counter() - started) * 1_000
    hybrid = await timed(index, questions)
    memory_mb = _resident_mb()
    changes: list[float] = []
    for number in range(_CHANGES):
        file = root / f"part{number}" / f"note{number}.md"
        file.write_text(f"{file.read_text()}\nmarker{number}\n")
        started = time.perf_counter()
        await index.refresh()
        changes.append(time.perf_counter() - started)
        found = await index.search(f"marker{number}", 3)
        assert any(f"marker{number}" in hit.passage.text for hit in found)
    await index.close()
    async with DocIndex(root, data, by_words_only=True) as lexical:
        words = await timed(lexical, questions)
    return {
        "open_ms": round(open_ms),
        "p50_ms": round(hybrid[49], 1),
        "p95_ms": round(hybrid[94], 1),
        "words_p50_ms": round(words[49], 1),
        "memory_mb": round(memory_mb),
        "change_ms": round(sorted(changes)[_CHANGES // 2] * 1_000),
    }


async def timed(index: DocIndex, questions: Sequence[str]) -> list[float]:
    """The percentiles, in ms, of asking each question once."""
    await index.search("the first question loads the model", 3)
    took: list[float] = []
    for question in questions:
        started = time.perf_counter()
        await index.search(question, 3)
        took.append((time.perf_counter() - started) * 1_000)
    return quantiles(took, n=100)


def _resident_mb() -> float:
    """What this process has in memory now, files mapped into it included."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1_024


if __name__ == "__main__":
    folder, indexes = (Path(argument) for argument in sys.argv[1:])
    print(json.dumps(asyncio.run(ask(folder, indexes, sys.stdin.read().splitlines()))))
