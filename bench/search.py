"""What search is worth and what it costs: quality on sets with known answers, figures by size.

    python -m bench.search [--data PATH] [--json] [--sizes 1000,10000,100000] [--keep PATH]

Embedding the articles takes about ten minutes on two cores, once: --keep names a folder where
indexes and vectors stay for the next time.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.search_quality import Judged, Scores, chosen_weight, judge
from bench.search_scale import measure
from bench.search_sets import MISSING, EvalSet, awsdocs, data_folder, stackfaq, xquad
from core.search.embedder import MiniLM, multilingual
from core.search.meaning import ENGLISH_WEIGHT, FOREIGN_WEIGHT
from core.search.report import Progress

GOALS = {
    "stackfaq": (0.885, 0.90),
    "stackfaq+title": (0.955, 0.0),
    "awsdocs": (0.885, 0.90),
    "xquad de": (0.85, 0.0),
    "xquad es": (0.85, 0.0),
    "xquad zh": (0.80, 0.0),
    "xquad ru": (0.82, 0.0),
}
"""nDCG@10 and top 3 that the hybrid should reach."""

SCALE_GOALS = {"p50_ms": 15, "memory_mb": 400, "change_ms": 1_000}
"""At 100,000 passages."""

LANGUAGES = ("de", "es", "zh", "ru")
QUESTIONS = 300


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder of the evaluation sets")
    parser.add_argument("--keep", type=Path, help="where indexes and vectors stay")
    parser.add_argument("--sizes", default="1000,10000,100000", help="passages; empty for none")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    data = data_folder(options.data)
    sizes = [int(size) for size in options.sizes.split(",") if size]
    with tempfile.TemporaryDirectory() as folder:
        home = options.keep or Path(folder)
        quality = measure_quality(data, home) if data else {}
        scale = [asyncio.run(measure(Path(folder) / "scale", size, QUESTIONS)) for size in sizes]
    speed = embedding_speed()
    # Others' work on the machine stretches every time above.
    load = round(os.getloadavg()[0], 1)
    figures: dict[str, Any] = {"quality": quality, "scale": scale, "embedding": speed, "load": load}
    if not data:
        figures["missing"] = MISSING
    if options.json:
        print(json.dumps(figures))
    else:
        show(figures)


def measure_quality(data: Path, home: Path) -> dict[str, Any]:
    """Scores of each set by words, by meaning and by both, and of the weight chosen on a half."""
    english = MiniLM()
    sets = (
        awsdocs(data),
        stackfaq(data, with_title=False),
        stackfaq(data, with_title=True),
        xquad(data),
    )
    judged = [judge(given, home, english, tell(given)) for given in sets]
    weight, halves = chosen_weight(judged, GOALS)
    found: dict[str, Any] = {"weight": ENGLISH_WEIGHT, "chosen_on_even": weight, "sets": {}}
    for item, half in zip(judged, halves, strict=True):
        found["sets"][item.given.name] = scores(item, ENGLISH_WEIGHT) | {"odd_half": half}
    extra = multilingual()
    if extra is None:
        found["languages"] = "the extra multilingual is not installed"
        return found
    for language in LANGUAGES:
        given = xquad(data, language)
        item = judge(given, home, extra, tell(given))
        found["sets"][given.name] = scores(item, FOREIGN_WEIGHT)
    return found


def scores(item: Judged, weight: float) -> dict[str, Scores]:
    """nDCG@10 and top 3 on all questions."""
    return {
        "words": item.scores(0.0),
        "meaning": item.scores(1.0),
        "hybrid": item.scores(weight),
    }


def tell(given: EvalSet) -> Any:
    """Shows on stderr how far the embedding of a set is, every ten seconds."""
    last = time.monotonic()

    def show_progress(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last > 10:
            last = time.monotonic()
            text = f"{given.name}: {progress.done:,} of {progress.total:,} passages embedded"
            print(text, file=sys.stderr)

    return show_progress


def embedding_speed() -> dict[str, float]:
    """Passages of about 100 words a second, with all cores."""
    model = MiniLM()
    texts = [f"Passage {n}. " + "A sentence of some length says it. " * 14 for n in range(96)]
    model.embed(texts[:8])
    started = time.perf_counter()
    for first in range(0, len(texts), model.step):
        model.embed(texts[first : first + model.step])
    speed = len(texts) / (time.perf_counter() - started)
    return {"passages_a_second": round(speed, 1), "cores": os.cpu_count() or 1}


def show(figures: dict[str, Any]) -> None:
    """Tables for people."""
    quality = figures["quality"]
    if quality:
        print("nDCG@10 / top 3      by words        by meaning      both            odd half")
        for name, row in quality["sets"].items():
            cells = [row["words"], row["meaning"], row["hybrid"], row.get("odd_half")]
            print(
                f"{name:19}  " + "  ".join(f"{_cell(cell):14}" for cell in cells) + _goal(name, row)
            )
        print(f"weight of meaning {quality['weight']}; best on even questions: ", end="")
        print(f"{quality['chosen_on_even']}, whose scores on the odd ones are the last column")
        if "languages" in quality:
            print(f"questions in other languages: {quality['languages']}")
    else:
        print(figures["missing"])
    if figures["scale"]:
        names = list(figures["scale"][0])
        print("\n" + "  ".join(f"{name:>12}" for name in names))
        for row in figures["scale"]:
            print("  ".join(f"{row[name]:>12,}" for name in names))
        goals = ", ".join(f"{name} ≤ {limit:,}" for name, limit in SCALE_GOALS.items())
        print(f"goals at 100,000: {goals}")
    speed = figures["embedding"]
    print(f"\nembedding: {speed['passages_a_second']} passages/s on {speed['cores']} cores")
    print(f"load of the machine at the end: {figures['load']}")


def _cell(pair: Sequence[float] | None) -> str:
    return f"{pair[0]:.4f}/{pair[1]:.3f}" if pair else ""


def _goal(name: str, row: dict[str, Any]) -> str:
    if name not in GOALS:
        return ""
    is_met = all(value >= goal for value, goal in zip(row["hybrid"], GOALS[name], strict=True))
    wanted = "/".join(str(goal) for goal in GOALS[name] if goal)
    return f"  goal {wanted}: {'met' if is_met else 'MISSED'}"


if __name__ == "__main__":
    main()
