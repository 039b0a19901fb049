"""The Lua scripts in core/lua: their text as the server gets it.

It must not know what they do.
"""

import hashlib
from functools import cache
from pathlib import Path

from core.keys import LUA_KEYS

_FOLDER = Path(__file__).parent / "lua"


@cache
def text_of(name: str) -> tuple[str, str]:
    """(SHA1, text) of core/lua/<name>.lua: the keys, what scripts share, then its own lines."""
    parts = [LUA_KEYS, *((_FOLDER / f"{part}.lua").read_text("utf-8") for part in ("common", name))]
    text = "\n".join(parts)
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(), text
