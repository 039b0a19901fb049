"""Owns an embedder whose meanings are written down, in place of a trained model.

It must not know the index. It fails on request, counts what it embeds, and can be held.
"""

import threading
from collections.abc import Mapping, Sequence

import numpy as np

from core.search.embedder import EmbedderDown, Vectors, unit

DIMS = 64


class ScriptedEmbedder:
    """Texts that hold one of `senses`' words point the same way; all others each their own.

    `senses` maps a word to the number of its direction. `is_down` makes every call fail. While
    `gate` is clear, calls wait.
    """

    def __init__(self, senses: Mapping[str, int], name: str = "scripted-1") -> None:
        self.id = name
        self.dims = DIMS
        self.step = 8
        self.good = 0.56
        self.least = 0.3
        self.is_down = False
        self.texts: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self._senses = senses

    def understands(self, text: str) -> bool:
        """Whether the text has no word of the language it does not know."""
        return "unverständlich" not in text

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of length 1 for each text."""
        if not self.gate.wait(30):
            raise EmbedderDown("the gate never opened")
        if self.is_down:
            raise EmbedderDown("the model is on strike")
        self.texts.extend(texts)
        rows = np.full((len(texts), DIMS), 0.005, np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word, direction in self._senses.items():
                if word in text.lower():
                    row[direction] += 1
        return unit(rows)
