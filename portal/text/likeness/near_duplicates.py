"""Detection of chunks with the same text, such as copies and old versions of a document.

Texts are compared by their shingles, runs of SHINGLE_CHARACTERS letters and digits in any script
(Broder, On the resemblance and containment of documents, 1997). All texts are hashed at once in
arrays, a sample of the shingles selects candidate pairs, and only those are compared whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from unicodedata import category

import numpy as np
import numpy.typing as npt

from portal.text.characters.folding import fold
from portal.text.characters.normalise import clean

SHINGLE_CHARACTERS = 5
# The share of all shingles of both texts that they have in common.
RESEMBLANCE = 0.9
# The share of the later text's shingles that occur in the earlier, longer one.
CONTAINMENT = 0.97
# A heading or a word occurs in many chunks without being a copy of any.
MIN_CONTAINED_CHARACTERS = 60

_SAMPLE_SHARE = 1 / 16  # The share of shingles that is compared to find candidate pairs,
_MAX_SAMPLES = 20_000  # fewer for very many texts: each is compared with all others.
_MIN_SAMPLED_SHARE = 0.6  # Far below the similarity of copies, so that sampling error loses none.
_MIXER = np.uint32(0x9E3779B1)  # 2^32 over the golden ratio, prime (Knuth, TAOCP 6.4).

_NUMBER = re.compile(r"[\d零〇一二三四五六七八九十百千万萬亿億两兩]+(?:[.,]\d+)*")
_SPELLINGS = str.maketrans("〇萬億兩", "零万亿两", ",")

_Units = npt.NDArray[np.uint16]
_Hashes = npt.NDArray[np.uint32]

_HALF = np.uint64(32)  # A pair is one number: the shingle's hash above the 32 bits of its owner.
_DROPPED = 0
_UNKNOWN = 0xFFFF  # Not a valid character.
# The folded value of each UTF-16 unit, filled on first use.
_folded_units = np.full(0x10000, _UNKNOWN, np.uint16)


def group_near_duplicates(texts: Sequence[str]) -> list[int]:
    """Return for each text the index of the first text that says the same, or its own.

    Case, accents, punctuation, white space, and traditional or simplified characters make no
    difference. A different number always does: "15 days" is not a copy of "20 days".
    """
    units, bounds = _units_of(texts)
    hashes = _shingles(units)
    compared = _Comparison(texts, hashes, bounds)
    groups = list(range(len(texts)))
    first_of: dict[bytes, int] = {}
    for index in range(len(texts)):
        # Texts too short for a shingle are compared only here.
        whole = units[bounds[index] : bounds[index + 1]].tobytes()
        first = first_of.setdefault(whole, index)
        if first != index and whole and compared.have_same_numbers(first, index):
            groups[index] = first
    for earlier, later in _candidate_pairs(hashes, bounds):
        is_open = groups[later] == later and groups[earlier] == earlier
        if is_open and compared.are_near_identical(earlier, later):
            groups[later] = earlier
    return [groups[group] for group in groups]


def _units_of(texts: Sequence[str]) -> tuple[_Units, npt.NDArray[np.intp]]:
    """Return the folded letters and digits of all texts in one array, and each text's bounds."""
    encoded = [text.encode("utf-16-le", "surrogatepass") for text in texts]
    raw = np.frombuffer(b"".join(encoded), np.uint16)
    ends = np.cumsum([0, *(len(part) // 2 for part in encoded)])
    folded = np.take(_folded_units, raw)
    if len(unknown := raw[folded == _UNKNOWN]):
        for unit in set(unknown.tolist()):
            _folded_units[unit] = _fold_unit(unit)
        folded = np.take(_folded_units, raw)
    kept = np.flatnonzero(folded != _DROPPED)
    return np.take(folded, kept), np.searchsorted(kept, ends)


def _fold_unit(unit: int) -> int:
    character = chr(unit)
    if category(character) == "Cs":  # Half of a character beyond the basic plane.
        return unit
    folded = fold(character).text[:1]
    return ord(folded) if folded.isalnum() and folded < chr(_UNKNOWN) else _DROPPED


def _shingles(units: _Units) -> _Hashes:
    """Return a hash for the shingle at each position; a text's last ones extend into the next."""
    length = len(units) - SHINGLE_CHARACTERS + 1
    if length <= 0:
        return np.empty(0, np.uint32)
    wide = units.astype(np.uint32)
    hashes = wide[:length].copy()
    for offset in range(1, SHINGLE_CHARACTERS):
        hashes *= _MIXER
        hashes ^= hashes >> np.uint32(15)
        hashes += wide[offset : offset + length]
    hashes *= _MIXER
    return hashes


def _candidate_pairs(hashes: _Hashes, bounds: npt.NDArray[np.intp]) -> Iterator[tuple[int, int]]:
    """Yield pairs (earlier, later) most of whose sampled shingles agree, in order."""
    share = min(_SAMPLE_SHARE, _MAX_SAMPLES / max(1, len(hashes)))
    places = np.flatnonzero(hashes < int(share * 2**32))
    owners = np.searchsorted(bounds, places, side="right") - 1
    inside = places + SHINGLE_CHARACTERS <= bounds[owners + 1]
    # Each text's shingles once, equal ones side by side.
    pairs = hashes[places[inside]].astype(np.uint64) << _HALF
    pairs = _sort_distinct(pairs | owners[inside].astype(np.uint64))
    shingles = pairs >> _HALF
    owners = (pairs ^ shingles << _HALF).astype(np.intp)
    sizes = np.bincount(owners, minlength=len(bounds) - 1)
    # Most shingles occur in one text only and say nothing about pairs.
    is_first = np.append(True, shingles[1:] != shingles[:-1])
    is_shared = ~(is_first & np.append(is_first[1:], True))
    if not is_shared.any():
        return
    columns = (np.cumsum(is_first & is_shared) - 1)[is_shared]
    present = np.zeros((len(sizes), columns[-1] + 1), np.float32)
    present[owners[is_shared], columns] = 1
    common = present @ present.T
    smaller = np.minimum(sizes[:, None], sizes[None, :])
    likely = np.triu((common > 0) & (common >= _MIN_SAMPLED_SHARE * smaller), k=1)
    # Ordered by the later text, and for each by rank.
    laters, earliers = np.nonzero(likely.T)
    yield from zip(earliers.tolist(), laters.tolist(), strict=True)


class _Comparison:
    """Compares whole texts. The shingles and numbers of each are computed once, on first use."""

    def __init__(self, texts: Sequence[str], hashes: _Hashes, bounds: npt.NDArray[np.intp]) -> None:
        self._texts, self._hashes, self._bounds = texts, hashes, bounds
        self._shingles: dict[int, _Hashes] = {}
        self._numbers: dict[int, frozenset[str]] = {}

    def are_near_identical(self, earlier: int, later: int) -> bool:
        first, second = self._shingles_of(earlier), self._shingles_of(later)
        common = len(np.intersect1d(first, second, assume_unique=True))
        if common >= RESEMBLANCE * (len(first) + len(second) - common):
            return self.have_same_numbers(earlier, later)
        length = self._bounds[later + 1] - self._bounds[later]
        if length < MIN_CONTAINED_CHARACTERS or common < CONTAINMENT * len(second):
            return False
        return self._numbers_of(later) <= self._numbers_of(earlier)

    def have_same_numbers(self, earlier: int, later: int) -> bool:
        return self._numbers_of(earlier) == self._numbers_of(later)

    def _shingles_of(self, index: int) -> _Hashes:
        """Return all distinct shingles of a text, sorted."""
        if index not in self._shingles:
            start, end = self._bounds[index : index + 2]
            last = max(start, end - SHINGLE_CHARACTERS + 1)
            self._shingles[index] = _sort_distinct(self._hashes[start:last])
        return self._shingles[index]

    def _numbers_of(self, index: int) -> frozenset[str]:
        if index not in self._numbers:
            found = _NUMBER.findall(self._texts[index])
            self._numbers[index] = frozenset(map(_canonical_number, found))
        return self._numbers[index]


def _sort_distinct(hashes: _Hashes) -> _Hashes:
    """Return sorted distinct values; numpy.unique hashes first and takes several times as long."""
    ordered = np.sort(hashes)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


@lru_cache(maxsize=4096)
def _canonical_number(number: str) -> str:
    return clean(number).translate(_SPELLINGS)
