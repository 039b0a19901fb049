"""Owns when to look at the folder again: as soon as the system tells of a change, and now and then.

It must not know what is done then.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

# The stop event of another async library, which is not installed, has no type.
from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]

log = logging.getLogger(__name__)

STEP_MS = 50
DEBOUNCE_MS = 400
"""Changes within this time are taken together, however long they go on."""

LOOK_AGAIN_S = 10.0
"""Network and bind mounts tell of no change, so the folder is looked at anyway."""

_TICK_MS = 1_000
"""How soon a folder that was replaced as a whole is noticed."""

_RETRY_S = 1.0


async def changes(root: Path) -> AsyncGenerator[None]:
    """One item for each burst of changes under `root`, or after LOOK_AGAIN_S without one.

    Goes on when the folder vanishes, and watches the new one when it is back. Ends only by
    cancellation.
    """
    is_told = False
    while True:
        try:
            before = root.stat().st_ino
            is_told = False
            watched = awatch(
                root,
                watch_filter=None,
                debounce=DEBOUNCE_MS,
                step=STEP_MS,
                rust_timeout=_TICK_MS,
                yield_on_timeout=True,
                ignore_permission_denied=True,
            )
            # The first item always counts: what changed before the watch was up is told by none.
            looked = -LOOK_AGAIN_S
            async with aclosing(watched):
                async for changed in watched:
                    is_other = root.stat().st_ino != before
                    if changed or is_other or time.monotonic() - looked > LOOK_AGAIN_S:
                        yield
                        looked = time.monotonic()
                    if is_other:
                        break
        except OSError as err:
            if not is_told:
                log.warning("the documents' folder cannot be watched: %s", err.strerror or err)
            is_told = True
            await asyncio.sleep(_RETRY_S)
