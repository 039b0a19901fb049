"""Owns BERT's uncased WordPiece: text → the ids that the embedding model was trained on.

It must not know the model that reads the ids.

Source: github.com/google-research/bert, tokenization.py (the rules), and the vocabulary in
`data/minilm`, whose NOTICE stands beside it.
"""

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

VOCABULARY = Path(__file__).parent / "data" / "minilm" / "vocab.txt"
MAX_WORD_CHARS = 100
_CACHE_ENTRIES = 50_000

_ALONE = re.compile(
    r"[!-/:-@\[-`{-~]"
    r"|[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf"
    r"\U0002f800-\U0002fa1f]"
)


class WordPiece:
    """Text to ids, between the marks for start and end."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids = {token: number for number, token in enumerate(vocabulary)}
        self._unknown = self._ids["[UNK]"]
        self._start, self._end = self._ids["[CLS]"], self._ids["[SEP]"]
        self._cache: dict[str, tuple[int, ...]] = {}

    @classmethod
    def load(cls) -> "WordPiece":
        """The tokenizer of the vocabulary that comes with the project."""
        return cls(VOCABULARY.read_text(encoding="utf-8").splitlines())

    def encode(self, text: str, max_ids: int) -> list[int]:
        """At most `max_ids` ids, the marks included; what is beyond is cut."""
        ids = [self._start]
        for word in _words(text):
            pieces = self._cache.get(word)
            if pieces is None:
                pieces = self._pieces(word)
                if len(self._cache) >= _CACHE_ENTRIES:
                    self._cache.clear()
                self._cache[word] = pieces
            ids.extend(pieces)
            if len(ids) >= max_ids:
                break
        return [*ids[: max_ids - 1], self._end]

    def _pieces(self, word: str) -> tuple[int, ...]:
        """The longest known beginnings, one after another; one unknown makes all unknown."""
        if len(word) > MAX_WORD_CHARS:
            return (self._unknown,)
        found: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                number = self._ids.get(prefix + word[start:end])
                if number is not None:
                    found.append(number)
                    start = end
                    break
            else:
                return (self._unknown,)
        return tuple(found)


def _words(text: str) -> list[str]:
    """Lower-case words without marks; punctuation and CJK characters stand alone."""
    if not text.isascii():
        text = "".join(_visible(char) for char in text)
    else:
        text = "".join(char for char in text if char >= " " or char in "\t\n\r")
    text = text.lower()
    if not text.isascii():
        split = unicodedata.normalize("NFD", text)
        kept = (char for char in split if unicodedata.category(char) != "Mn")
        text = "".join(f" {char} " if _is_punctuation(char) else char for char in kept)
    return _ALONE.sub(r" \g<0> ", text).split()


def _visible(char: str) -> str:
    if char in "\t\n\r":
        return " "
    category = unicodedata.category(char)
    if char in "\x00\ufffd" or category in ("Cc", "Cf", "Cs", "Co", "Cn"):
        return ""
    return " " if category == "Zs" else char


def _is_punctuation(char: str) -> bool:
    return unicodedata.category(char).startswith("P")
