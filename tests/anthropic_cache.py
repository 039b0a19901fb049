"""The prompt cache of the local Anthropic server, and its token estimate.

It must not know HTTP. Tokens are estimated as the characters of a block's compact JSON, without
its cache mark, divided by 4 and rounded up: deterministic, and close to English prose.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

CHARS_PER_TOKEN = 4
MIN_TOKENS = 512
LIFETIME_S = 300.0
LOOKBACK_BLOCKS = 20
"""How far before a mark an earlier entry is still found.

Source: https://platform.claude.com/docs/en/build-with-claude/prompt-caching"""


@dataclass(frozen=True, slots=True)
class Billed:
    """The input tokens of one request, as the usage object splits them."""

    input: int
    cache_read: int
    cache_write: int

    @property
    def total(self) -> int:
        """What the request would cost without a cache."""
        return self.input + self.cache_read + self.cache_write


def tokens(text: str) -> int:
    """The estimate for a text."""
    return -(-len(text) // CHARS_PER_TOKEN)


def prompt_tokens(body: Mapping[str, Any]) -> int:
    """The estimate for a whole request."""
    return sum(size for _, size, _ in _parts(body))


class PromptCache:
    """Which prefixes are known, each for five minutes from its last use.

    An entry is written at every mark and found from a later request's mark, at the mark itself
    or up to 20 blocks before it. `clock` gives seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._expiry: dict[str, float] = {}

    def clear(self) -> None:
        """Forgets every prefix: the next request is cold."""
        self._expiry.clear()

    def bill(self, body: Mapping[str, Any]) -> Billed:
        """The split of the request's input tokens; its marked prefixes are known from now on."""
        now = self._clock()
        self._expiry = {key: at for key, at in self._expiry.items() if at > now}
        # A cached prefix belongs to a model; every key hangs on all that comes before it.
        digest = hashlib.sha256(str(body["model"]).encode())
        keys: list[str] = []
        ends: list[int] = []
        marks: list[int] = []
        total = 0
        for place, (text, size, is_marked) in enumerate(_parts(body)):
            digest.update(text.encode() + b"\0")
            total += size
            keys.append(digest.hexdigest())
            ends.append(total)
            if is_marked and total >= MIN_TOKENS:
                marks.append(place)
        read = 0
        for mark in marks:
            for place in range(mark, max(-1, mark - LOOKBACK_BLOCKS - 1), -1):
                if keys[place] in self._expiry:
                    read = max(read, ends[place])
                    self._expiry[keys[place]] = now + LIFETIME_S
                    break
        for mark in marks:
            self._expiry[keys[mark]] = now + LIFETIME_S
        written = max(0, ends[marks[-1]] - read) if marks else 0
        return Billed(total - read - written, read, written)


def _parts(body: Mapping[str, Any]) -> Iterator[tuple[str, int, bool]]:
    """Every block in the order of the prefix: its exact text, its tokens, whether it is marked."""
    for tool in body.get("tools", ()):
        yield _part(tool)
    system = body.get("system", ())
    for block in [{"type": "text", "text": system}] if isinstance(system, str) else system:
        yield _part(block)
    # A change of these reuses tools and system, but no message.
    settings = json.dumps([body.get("thinking"), body.get("tool_choice")])
    for message in body["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            text, size, is_marked = _part(block)
            yield settings + str(message["role"]) + text, size, is_marked


def _part(block: Mapping[str, Any]) -> tuple[str, int, bool]:
    bare = {name: value for name, value in block.items() if name != "cache_control"}
    text = json.dumps(bare, ensure_ascii=False, separators=(",", ":"))
    return text, tokens(text), "cache_control" in block
