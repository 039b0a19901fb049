"""Owns the vectors on disk: a file that only grows, keyed by content, mapped into memory.

It must not know which passages are alive: it is a cache, and the index is the truth. Everything
here blocks.
"""

import os
import struct
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.search.embedder import Vectors

_MAGIC = b"FOOTVEC1"
_HEADER = struct.Struct("<8sII")
_BLOCK_ROWS = 1_024
"""Rows widened at a time: they stay in the processor's cache."""

_CLOSE_ROWS = 2_000
_CLOSE_PART = 50
"""Rows looked at closely: at least so many, and at least this part of all."""

_COMPACT_FROM = 1_000
_NO_VECTOR = 1e-9
"""A scale below this marks a row of zeros: the model does not know the passage's language."""

Keys = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.intp]
Vector = npt.NDArray[np.float32]


class VectorTable:
    """One state of the file, unchanging: rows of 8-bit codes, each with a key and a scale.

    `before` is an earlier state of the same file, whose rows are the first of these: what was
    made of them is taken over.
    """

    def __init__(self, rows: npt.NDArray[Any], before: "VectorTable | None" = None) -> None:
        self._codes: npt.NDArray[np.int8] = np.asarray(rows["codes"])
        new = rows[len(before) if before else 0 :]
        self.keys: Keys = np.array(new["key"])
        self.scales: Vector = np.array(new["scale"])
        self.signs = _signs(new["codes"])
        if before:
            self.keys = np.concatenate([before.keys, self.keys])
            self.scales = np.concatenate([before.scales, self.scales])
            self.signs = np.concatenate([before.signs, self.signs], axis=1)
        self._order = np.argsort(self.keys, kind="stable")

    def __len__(self) -> int:
        return len(self.keys)

    def find(self, keys: Sequence[int] | Keys) -> Rows:
        """The row of each key, -1 where there is none."""
        wanted = np.asarray(keys, np.uint64)
        if not len(self.keys):
            return np.full(len(wanted), -1, np.intp)
        at = np.searchsorted(self.keys, wanted, sorter=self._order)
        rows = self._order[np.minimum(at, len(self._order) - 1)]
        return np.where(self.keys[rows] == wanted, rows, -1)

    def nearest(self, vector: Vector, count: int, least: float) -> list[int]:
        """The keys of the `count` rows nearest to `vector`, in no order, of cosine >= `least`.

        Of many rows, those whose signs agree most are looked at closely: a tenth of the work,
        and as good as all of the nearest hundred.
        """
        rows: Rows = np.arange(len(self), dtype=np.intp)
        close = max(_CLOSE_ROWS, len(self) // _CLOSE_PART)
        if len(self) > 2 * close:
            rows = np.argpartition(self._distances(vector), close)[:close]
        cosines = self._cosines(rows, vector)
        if len(rows) > count:
            best = np.argpartition(cosines, -count)[-count:]
            rows, cosines = rows[best], cosines[best]
        return [int(key) for key in self.keys[rows[cosines >= least]]]

    def cosines(self, keys: Sequence[int], vector: Vector) -> list[float | None]:
        """The cosine of `vector` with the row of each key; None where there is no vector."""
        rows = self.find(keys)
        cosines = self._cosines(np.maximum(rows, 0), vector) if len(self) else np.zeros(len(rows))
        return [
            float(cosine) if row >= 0 and self.scales[row] > _NO_VECTOR else None
            for row, cosine in zip(rows, cosines, strict=True)
        ]

    def _cosines(self, rows: Rows, vector: Vector) -> Vector:
        """Exact but for the 8-bit rounding."""
        found = np.empty(len(rows), np.float32)
        for first in range(0, len(rows), _BLOCK_ROWS):
            part = rows[first : first + _BLOCK_ROWS]
            wide = self._codes[part].astype(np.float32)
            # Not BLAS: on a busy machine its threads wait for each other longer than they work.
            found[first : first + len(part)] = np.einsum("ij,j->i", wide, vector)
        return found * self.scales[rows]

    def _distances(self, vector: Vector) -> npt.NDArray[np.uint16]:
        """In how many signs each row differs from `vector`."""
        words = np.packbits(vector > 0).view(np.uint64)
        found = np.zeros(len(self), np.uint16)
        for word, column in zip(words, self.signs, strict=True):
            found += np.bitwise_count(column ^ word)
        return found


def _signs(codes: npt.NDArray[np.int8]) -> npt.NDArray[np.uint64]:
    """Rows of codes to columns of sign bits, 64 in a number."""
    columns = codes.shape[1] // 64
    bits = np.empty((columns, len(codes)), np.uint64)
    for first in range(0, len(codes), _BLOCK_ROWS):
        block = np.packbits(codes[first : first + _BLOCK_ROWS] > 0, axis=1)
        bits[:, first : first + len(block)] = block.view(np.uint64).T
    return bits


class VectorCache:
    """The file of vectors: 400 bytes a passage. Any process may read; one at a time appends.

    The caller holds the lock between processes for `append` and `compact`.
    """

    def __init__(self, path: Path, dims: int) -> None:
        if dims % 64:
            raise ValueError("dims must be a multiple of 64")
        self._path = path
        self._record = np.dtype(
            [("key", "<u8"), ("scale", "<f4"), ("spare", "<u4"), ("codes", "i1", (dims,))]
        )
        self._header = _HEADER.pack(_MAGIC, dims, self._record.itemsize)
        self._mark: tuple[int, int] = (0, 0)
        self._table = VectorTable(np.zeros(0, self._record))
        self._reading = threading.Lock()

    def table(self) -> VectorTable:
        """The newest state, with what other processes appended."""
        with self._reading:
            try:
                status = self._path.stat()
            except FileNotFoundError:
                return self._table
            mark = (status.st_ino, status.st_size)
            if mark != self._mark:
                has_grown = mark[0] == self._mark[0] and mark[1] > self._mark[1]
                before = self._table if has_grown else None
                self._table = VectorTable(self._map(status.st_size), before)
                self._mark = mark
            return self._table

    def append(self, keys: Sequence[int], vectors: Vectors) -> None:
        """Add rows for `keys`; what a crash left half written is overwritten."""
        records = np.zeros(len(keys), self._record)
        records["key"] = keys
        scales = np.maximum(np.abs(vectors).max(axis=1), 1e-12) / 127
        records["scale"] = scales
        records["codes"] = np.rint(vectors / scales[:, None]).astype(np.int8)
        is_new = not self._has_header()
        with self._path.open("w+b" if is_new else "r+b") as file:
            if is_new:
                file.write(self._header)
            whole = (file.seek(0, os.SEEK_END) - len(self._header)) // self._record.itemsize
            file.seek(len(self._header) + whole * self._record.itemsize)
            file.write(records.tobytes())

    def compact(self, keys: Sequence[int]) -> bool:
        """Drop the rows that are not of `keys`, once they are most of a large file."""
        table = self.table()
        rows = table.find(list(dict.fromkeys(keys)))
        kept = np.sort(rows[rows >= 0])
        if len(table) < _COMPACT_FROM or len(kept) * 2 > len(table):
            return False
        fresh = self._path.with_suffix(".new")
        with fresh.open("wb") as file:
            file.write(self._header)
            file.write(self._map(self._path.stat().st_size)[kept].tobytes())
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        return True

    def _map(self, size: int) -> npt.NDArray[Any]:
        count = (size - len(self._header)) // self._record.itemsize
        if count <= 0 or not self._has_header():
            return np.zeros(0, self._record)
        return np.memmap(self._path, self._record, "r", len(self._header), (count,))

    def _has_header(self) -> bool:
        try:
            with self._path.open("rb") as file:
                return file.read(len(self._header)) == self._header
        except FileNotFoundError:
            return False
