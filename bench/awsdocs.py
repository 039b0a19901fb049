"""Real help articles through the real program: is the right article among the sources?

Writes the articles of the set awsdocs as Markdown files, lets `footnote index` read them, asks
questions of its customers through `footnote chat --json --offline`, one process each, and counts
how often the article that answers is among the sources. Every tenth question is asked, so that
the choice is nobody's. Embedding the articles takes about ten minutes on two cores, once: --keep
names a folder where documents and index stay for the next time.

    python -m bench.awsdocs [--data PATH] [--questions N] [--keep PATH] [--json]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from zlib import crc32

from bench.search_sets import MISSING, articles, data_folder, queries

GOAL = 7
TIMEOUT_S = 7_200
"""For embedding 11,849 passages on a machine that is busy with other work."""

PROGRAM = Path(sys.executable).with_name("footnote")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one question; `duration_s` is that of the whole process."""

    question: str
    expected: str
    sources: tuple[str, ...]
    stop_reason: str
    duration_s: float

    @property
    def is_right(self) -> bool:
        """Whether the article that answers is among the sources."""
        return self.expected in self.sources


def main() -> None:
    """Asks and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder of the evaluation sets")
    parser.add_argument("--questions", type=int, default=10)
    parser.add_argument("--keep", type=Path, help="where documents and index stay")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    data = data_folder(options.data)
    if data is None:
        print(MISSING, file=sys.stderr)
        raise SystemExit(2)
    asked = queries(data / "awsdocs")
    step = max(len(asked) // options.questions, 1)
    with tempfile.TemporaryDirectory() as folder:
        home = (options.keep or Path(folder)).absolute()
        count = write_articles(data, home / "docs")
        started = time.perf_counter()
        footnote(home, "index")
        index_s = time.perf_counter() - started
        answers = [
            ask(home, query.text, next(iter(query.relevant)))
            for query in asked[::step][: options.questions]
        ]
    right = sum(answer.is_right for answer in answers)
    if options.json:
        rows = [asdict(answer) | {"is_right": answer.is_right} for answer in answers]
        figures = {"articles": count, "index_s": round(index_s, 1), "right": right}
        print(json.dumps(figures | {"questions": len(answers), "answers": rows}))
        return
    print(f"{count:,} articles indexed in {index_s:.1f} s")
    for answer in answers:
        mark = "right" if answer.is_right else "MISSED"
        print(f"{mark:6}  {answer.duration_s:4.1f} s  {answer.question}")
        if not answer.is_right:
            print(f"        wanted {answer.expected}; got {', '.join(answer.sources) or 'nothing'}")
    print(f"the right article is among the sources of {right} of {len(answers)} (goal: {GOAL})")


def write_articles(data: Path, root: Path) -> int:
    """The articles as files under `root`; gives their number."""
    count = 0
    for path, text in articles(data):
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            file.write_text(text)
        count += 1
    return count


def ask(home: Path, question: str, expected: str) -> Answer:
    """The answer of a fresh process, in a session of its own."""
    started = time.perf_counter()
    session = f"bench-{crc32(question.encode())}"
    output = footnote(home, "chat", question, "--json", "--offline", "--session", session)
    run = json.loads(output)
    paths = tuple(dict.fromkeys(source["path"] for source in run["sources"]))
    duration_s = round(time.perf_counter() - started, 2)
    return Answer(question, expected, paths, run["stop_reason"], duration_s)


def footnote(home: Path, *arguments: str) -> str:
    """The standard output of the program, with documents and data under `home`.

    Raises:
        CalledProcessError: it ended with a code other than 0 and 3 (an early stop).
    """
    settings = {"DOCS_PATH": str(home / "docs"), "DATA_DIR": str(home / "data")}
    done = subprocess.run(
        [str(PROGRAM), *arguments],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        cwd=home,
        timeout=TIMEOUT_S,
    )
    if done.returncode not in (0, 3):
        print(done.stderr, file=sys.stderr)
        done.check_returncode()
    return done.stdout


if __name__ == "__main__":
    main()
