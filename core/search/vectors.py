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
"""Rows widened at a time: they stay in the processor's cache, and BLAS starts no threads."""

_COMPACT_FROM = 1_000
_NO_VECTOR = 1e-9
"""A scale below this marks a row of zeros: the model does not know the passage's language."""

Keys = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.intp]
Vector = npt.NDArray[np.float32]


class VectorTable:
    """One state of the file, unchanging: rows of 8-bit codes, each with a key and a scale."""

    def __init__(self, rows: npt.NDArray[Any], dims: int) -> None:
        self._dims = dims
        self._codes: npt.NDArray[np.int8] = rows["codes"]
        self._scales: npt.NDArray[np.float32] = np.array(rows["scale"])
        self.keys: Keys = np.array(rows["key"])
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

    def similar(self, vector: Vector) -> Vector:
        """The cosine of `vector` with every row: exact but for the 8-bit rounding."""
        found = np.empty(len(self), np.float32)
        wide = np.empty((min(_BLOCK_ROWS, len(self)), self._dims), np.float32)
        for first in range(0, len(self), _BLOCK_ROWS):
            last = min(first + _BLOCK_ROWS, len(self))
            part = wide[: last - first]
            np.copyto(part, self._codes[first:last])
            np.dot(part, vector, out=found[first:last])
        found *= self._scales
        return found

    def cosines(self, keys: Sequence[int], similar: Vector) -> list[float | None]:
        """The part of `similar` that belongs to `keys`; None where there is no vector."""
        return [
            float(similar[row]) if row >= 0 and self._scales[row] > _NO_VECTOR else None
            for row in self.find(keys)
        ]


class VectorCache:
    """The file of vectors: 400 bytes a passage. Any process may read; one at a time appends.

    The caller holds the lock between processes for `append` and `compact`.
    """

    def __init__(self, path: Path, dims: int) -> None:
        self._path = path
        self._dims = dims
        self._record = np.dtype(
            [("key", "<u8"), ("scale", "<f4"), ("spare", "<u4"), ("codes", "i1", (dims,))]
        )
        self._header = _HEADER.pack(_MAGIC, dims, self._record.itemsize)
        self._mark: tuple[int, int] | None = None
        self._table = VectorTable(np.zeros(0, self._record), dims)
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
                self._table = VectorTable(self._map(status.st_size), self._dims)
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
