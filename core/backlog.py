"""The operator's view of the inbox: stock figures, dead letters, repair.

It must not know how a message is answered.
"""

from core.store import Store
from core.work import DeadLetter, Stats


class Backlog:
    """Of one workspace."""

    def __init__(
        self, store: Store, platform: str, workspace: str, *, run_ttl_days: int = 7
    ) -> None:
        raise NotImplementedError

    async def stats(self) -> Stats:
        """Depth, oldest age, in flight, dead letters. Raises StoreError."""
        raise NotImplementedError

    async def dead_letters(self) -> list[DeadLetter]:
        """All that were given up, newest first. Raises StoreError."""
        raise NotImplementedError

    async def retry_dead(self, letter_id: str) -> bool:
        """Whether the letter was found and put back at the end of its conversation's inbox."""
        raise NotImplementedError

    async def repair(self) -> int:
        """How many conversations were stuck and are ready again. Run at start. StoreError."""
        raise NotImplementedError
