"""Owns what a word is: text → the tokens that the lexical index stores and a question asks for.

It must not know files, passages or the engine that counts the tokens.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import Any, NamedTuple

import Stemmer

VERSION = 1
"""Raised when the tokens of the same text change, so that indexes made before are rebuilt."""

MAX_TOKEN_CHARS = 64
WHOLE_WEIGHT = 2.0
PART_WEIGHT = 0.5
"""What a compound's exact form and its parts weigh in a question, beside 1 for a plain word."""

_CACHE_ENTRIES = 50_000


_FUNCTION_WORDS = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with from am been being were its our your my me us them "
    "his her he she we you i so than too also any some about"
)
_QUESTION_WORDS = (
    "how what when where which who whom whose why can could do does did doing done have has had "
    "would should shall may might must please"
)
_CUT_CONTRACTIONS = (
    "don doesn didn isn aren wasn weren won wouldn couldn shouldn hasn haven hadn cannot im ive "
    "whats hows wheres"
)
STOP_WORDS = frozenset(f"{_FUNCTION_WORDS} {_QUESTION_WORDS} {_CUT_CONTRACTIONS}".split())

_CJK = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b"
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0eae\u1000-\u109f\u1780-\u17b3"
    "\U00020000-\U0003ffff"
)
"""Scripts written without spaces (and Hangul, whose endings are glued on)."""

_WORDS = re.compile(
    rf"[{_CJK}]+"
    r"|(?<!\w)[A-Za-z](?:\+\+|#)(?!\w)"
    r"|\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?"
    rf"|[^\W{_CJK}]+(?:[-‐‑_.'’][^\W{_CJK}]+)*"
)
_IS_CJK = re.compile(rf"[{_CJK}]")
_TAIL = re.compile(r"['’](?:s|t|d|m|re|ve|ll)$", re.IGNORECASE)
_ELISION = re.compile(r"^[a-z]{1,2}['’]", re.IGNORECASE)
_JOINS = re.compile(r"[-‐‑_.'’]+")
_UPPER, _LOWER = "A-ZÀ-ÖØ-ÞА-ЯЁ", "a-zß-öø-ÿа-яё"
_CAMEL = re.compile(rf"(?<=[{_LOWER}\d])(?=[{_UPPER}])|(?<=[{_UPPER}])(?=[{_UPPER}][{_LOWER}])")
_PLURAL_ACRONYM = re.compile(rf"[{_UPPER}]{{2,}}s")
_LETTERS_OR_DIGITS = re.compile(r"\d+|[^\W\d_]+")
_FOLD = str.maketrans({"ø": "o", "đ": "d", "ł": "l", "æ": "ae", "œ": "oe", "ı": "i"})

_STEMMERS: tuple[tuple[str, str, str], ...] = (
    ("а", "ӿ", "russian"),
    ("Ͱ", "Ͽ", "greek"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
    ("\u0530", "\u058f", "armenian"),
)
"""First and last character of a script, and the Snowball stemmer for it; else English."""


class _Forms(NamedTuple):
    """A word's exact forms, its parts if it is a compound, and what a document stores of it."""

    exact: tuple[str, ...]
    parts: tuple[str, ...]
    stored: tuple[str, ...]


class Analyzer:
    """Text to tokens. Identifiers give their whole and their parts, CJK runs their bigrams."""

    def __init__(self) -> None:
        self._cache: dict[str, _Forms] = {}
        self._english = _stemmer("english")
        self._others: dict[str, Callable[[str], str]] = {}

    def tokens(self, text: str) -> list[str]:
        """The tokens of a document's text, in order, with repetitions."""
        found: list[str] = []
        known = self._cache
        for word in self._words(text):
            found.extend((known.get(word) or self._forms_of(word)).stored)
        return found

    def terms(self, query: str) -> dict[str, float]:
        """The distinct tokens of a question, in order, each with its weight.

        Empty when it says nothing to search for. An identifier's exact form weighs more than a
        plain word, and its parts less, so that text about the parts alone ranks below it.
        """
        weights: dict[str, float] = {}
        for word in self._words(query):
            forms = self._cache.get(word) or self._forms_of(word)
            for token in forms.exact:
                weights[token] = max(weights.get(token, 0.0), WHOLE_WEIGHT if forms.parts else 1.0)
            for token in forms.parts:
                weights[token] = max(weights.get(token, 0.0), PART_WEIGHT)
        return weights

    def _words(self, text: str) -> list[str]:
        text = unicodedata.normalize("NFKC", text)
        words: list[str] = _WORDS.findall(text)
        # In a text all in capitals, capitals say nothing about a word.
        if text.isupper():
            return [word for word in words if word.casefold() not in STOP_WORDS]
        return words

    def _forms_of(self, word: str) -> _Forms:
        if _IS_CJK.match(word):
            pairs = _bigrams(word)
            forms = _Forms(pairs or (word,), (), (*word, *pairs))
        else:
            exact, parts = self._expand(word)
            forms = _Forms(exact, parts, exact + parts)
        if len(self._cache) >= _CACHE_ENTRIES:
            self._cache.clear()
        self._cache[word] = forms
        return forms

    def _expand(self, word: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The exact forms of one word or compound, and those of its parts."""
        if word[-1] in "+#":
            return (word.casefold(),), ()
        if word[0].isdigit() and "," in word:
            return (word.replace(",", ""),), ()
        word = _TAIL.sub("", word)
        pieces = [piece for piece in _JOINS.split(_ELISION.sub("", word)) if piece]
        parts = [part for piece in pieces for part in _camel_parts(piece)]
        if not parts:
            return (), ()
        # Numbers keep their joints: 3.5 is not 35.
        is_number = len(parts) > 1 and all(part.isdigit() for part in parts)
        exact = self._forms(word if is_number else "".join(parts))
        found: dict[str, None] = {}
        for part in parts:
            if len(part) > 1 or part.isdigit():
                found.update(dict.fromkeys(self._forms(part)))
            runs = _LETTERS_OR_DIGITS.findall(part)
            if len(runs) > 1:
                # Parts of three or more: "4021" of E4021, but not the "s" and "3" of S3.
                long_runs = (run for run in runs if len(run) > 2)
                found.update(dict.fromkeys(form for run in long_runs for form in self._forms(run)))
        return exact, tuple(form for form in found if form not in exact)

    def _forms(self, part: str) -> tuple[str, ...]:
        """A part as it is matched: stemmed and without marks, and as written if it had any."""
        # In Russian ё is mostly written е, which is no other spelling.
        lower = part.casefold().replace("ё", "е")
        if lower in STOP_WORDS and not (len(part) > 1 and part.isupper()):
            return ()
        plain = _without_marks(lower)
        stem = self._stem(plain)[:MAX_TOKEN_CHARS] if len(plain) > 2 else plain
        return (stem,) if plain == lower else (stem, lower[:MAX_TOKEN_CHARS])

    def _stem(self, word: str) -> str:
        first = word[0]
        if first > "ʯ":
            for low, high, language in _STEMMERS:
                if low <= first <= high:
                    if language not in self._others:
                        self._others[language] = _stemmer(language)
                    return self._others[language](word)
            return word
        return self._english(word)


def _stemmer(language: str) -> Callable[[str], str]:
    # The package has no types. Its own cache is off, since words are cached whole.
    snowball: Any = Stemmer
    return snowball.Stemmer(language, 0).stemWord


def _bigrams(run: str) -> tuple[str, ...]:
    """Pairs of neighbours. A question of one character finds it through a document's singles."""
    return tuple(run[at : at + 2] for at in range(len(run) - 1))


def _camel_parts(piece: str) -> list[str]:
    if piece.islower() or piece.isupper() or _PLURAL_ACRONYM.fullmatch(piece):
        return [piece]
    return _CAMEL.split(piece)


def _without_marks(word: str) -> str:
    """`word` without diacritics. Cyrillic keeps them: й is a letter of its own."""
    if word.isascii():
        return word
    if word[0] > "ʯ" and not "Ͱ" <= word[0] <= "Ͽ":
        return word
    split = unicodedata.normalize("NFD", word.translate(_FOLD))
    return "".join(char for char in split if not unicodedata.combining(char)) or word
