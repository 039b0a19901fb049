"""A process of its own that keeps an index: writes it until it is killed, or counts from it.

Run as `python -m tests.search_worker write|count ROOT DATA`. It must not know the test.
"""

import asyncio
import sys
from pathlib import Path

from core.search import DocIndex


async def write(root: Path, data: Path) -> None:
    """Change every file and refresh, again and again, saying so each time."""
    turn = 0
    async with DocIndex(root, data, by_words_only=True) as index:
        while True:
            turn += 1
            for file in sorted(root.glob("*.md")):
                # In one step, so that a kill leaves no half file.
                fresh = file.with_suffix(".new")
                fresh.write_text(f"# {file.stem}\n\nsteady turn{turn} {'filler ' * 30}\n")
                fresh.replace(file)
            await index.refresh()
            print(turn, flush=True)


async def count(root: Path, data: Path) -> None:
    """Say how many passages hold the word that all of them hold, whenever a line comes in."""
    async with DocIndex(root, data, by_words_only=True) as index:
        print("open", flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            print(len(await index.search("steady", 1_000)), flush=True)


if __name__ == "__main__":
    command, root, data = sys.argv[1:]
    asyncio.run({"write": write, "count": count}[command](Path(root), Path(data)))
