"""Spelling corrections of a query ("did you mean") from the words of the user's own chunks.

A word is doubtful if no chunk that is searchable for the user has it, and it is only replaced by a
word that such a chunk has. Words of hidden documents, or of documents that are switched off, are
neither treated as known nor suggested.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from portal.domain.search import Correction
from portal.store.documents import vocabulary
from portal.store.search.filters.narrowing import pattern, title_pattern
from portal.store.search.word_counts import Evidence, SearchableWords
from portal.store.session import Session
from portal.text.characters.folding import fold, in_script_of
from portal.text.characters.normalise import normalise
from portal.text.terms import lexicon
from portal.text.terms.analyser import query_terms, tsquery_and, tsquery_or
from portal.text.terms.spelling import (
    LONG_HAN_WORD,
    Suspect,
    Word,
    edits,
    in_case_of,
    likeness,
    lookup_keys,
    max_edits,
    suspects_of,
    without_seen,
)

# A longer query was pasted rather than typed, and works without its odd words.
_MAX_SUSPECTS = 24
# Replacements looked up in the chunks at once, for each doubtful word.
_MAX_LOOKED_UP = 24
# A short Chinese word without neighbours that is close to more words than this is ambiguous.
_MAX_TRIED = 8
_MAX_COUNTED = 30
_MAX_IN_CONTEXT = 80

# A doubtful word and its candidates; one query over the chunks picks the best.
_Tried = tuple[Suspect, tuple[Word, ...]]
# Distance from the typed word, whether the first letter differs, minus the frequency: the lowest is
# the best.
_Choice = tuple[int, bool, int, Word]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a search has already found: words of the query as they occur in hits, and texts."""

    words: Sequence[str] = ()
    texts: Sequence[str] = ()


def count_doubtful(parsed_text: str, seen: Seen) -> int:
    """Count the words of a query that no result has. Does not use the database."""
    count, end = 0, 0
    for suspect in sorted(_doubtful(parsed_text, seen), key=lambda one: one.start):
        # Several windows of a Chinese text cover the same slip.
        count += suspect.start >= end
        end = max(end, suspect.end)
    return count


def _doubtful(parsed_text: str, seen: Seen) -> list[Suspect]:
    suspects = suspects_of(parsed_text)
    if not suspects:
        return []
    suspects = without_seen(suspects, query_terms(" ".join(seen.words)), "")
    # Texts may be long, and most queries are finished by now.
    return without_seen(suspects, (), "\n".join(seen.texts).lower()) if suspects else []


def correct(
    searchable: SearchableWords,
    parsed_text: str,
    seen: Seen = Seen(),
    *,
    threshold: float = 0.0,
) -> Correction | None:
    """Return the query with unknown words replaced by the nearest known ones, None if there is
    nothing to replace. Works without the keyword index. Words in `seen` are known. Replacements are
    at least `threshold` similar."""
    suspects = _doubtful(parsed_text, seen)
    return _corrected(searchable, parsed_text, suspects, threshold=threshold)


def correct_titles(
    searchable: SearchableWords,
    titles: Iterable[str],
    *,
    threshold: float = 0.0,
) -> Correction | None:
    """Return the titles that a query names, one per line, with each word that is in no title
    replaced by the nearest word that is in one; None if there is nothing to replace."""
    lines = "\n".join(titles)
    suspects = [suspect._replace(in_title=True) for suspect in suspects_of(lines)]
    return _corrected(searchable, lines, suspects, threshold=threshold)


def _corrected(
    searchable: SearchableWords,
    parsed_text: str,
    suspects: Sequence[Suspect],
    *,
    threshold: float,
) -> Correction | None:
    suspects = [one for one in suspects[:_MAX_SUSPECTS] if not _is_word(one)]
    suspects = _unknown(searchable, suspects)
    candidates = _candidates(searchable.session, suspects)
    chosen = {
        suspect: word
        for suspect, word in _chosen(searchable, candidates).items()
        if likeness(suspect.word, word.word) >= threshold
    }
    if not chosen:
        return None
    replaced: list[tuple[str, str]] = []
    corrected, done = "", 0
    for suspect, word in _without_overlaps(chosen):
        typed = parsed_text[suspect.start : suspect.end]
        new = _as_typed(parsed_text, typed, suspect, word)
        corrected += parsed_text[done : suspect.start] + new
        done = suspect.end
        if (typed, new) not in replaced:
            replaced.append((typed, new))
    corrected += parsed_text[done:]
    return Correction(corrected, query_terms(corrected), tuple(replaced))


def _is_word(suspect: Suspect) -> bool:
    """Return whether the dictionary has a word, which is then no slip: "sick leave" does not mean
    "sink leave", although no document mentions it. Does not wait for the dictionary."""
    return lexicon.is_loaded() and any(lexicon.translations(suspect.term.split()))


def _unknown(searchable: SearchableWords, suspects: Sequence[Suspect]) -> list[Suspect]:
    """Return the words that no chunk, or no title, visible to this user has."""
    wanted = {suspect: _evidence_of(suspect) for suspect in suspects if not suspect.in_title}
    titles = {suspect: title_pattern(suspect.word) for suspect in suspects if suspect.in_title}
    seen = set(searchable.matches(wanted))
    seen.update(searchable.title_matches(titles))
    return [suspect for suspect in suspects if suspect not in seen]


def _evidence_of(suspect: Suspect) -> Evidence:
    """Return evidence of a word in a chunk; a Chinese one may be segmented differently there."""
    if not suspect.is_han:
        return Evidence(tsquery_or((suspect.term,)))
    parts = tsquery_and(query_terms(suspect.word))
    return Evidence(f"{tsquery_or((suspect.term,))} | ({parts})", pattern(suspect.word))


def _candidates(session: Session, suspects: Sequence[Suspect]) -> dict[Suspect, list[Word]]:
    """Return the vocabulary words that each word may be a slip of, nearest first."""
    sought: dict[str, list[Suspect]] = defaultdict(list)
    for suspect in suspects:
        for key in lookup_keys(suspect.word):
            sought[key].append(suspect)
    found: dict[Suspect, set[Word]] = defaultdict(set)
    for key, word in vocabulary.find_by_keys(session, sought):
        for suspect in sought[key]:
            found[suspect].add(word)
    far = [suspect.word for suspect in suspects if max_edits(suspect.word) > 1]
    similar = vocabulary.find_similar(session, far)
    for suspect in suspects:
        found[suspect].update(similar.get(suspect.word, ()))
    return {suspect: _nearest(suspect, words) for suspect, words in found.items()}


def _nearest(suspect: Suspect, words: Iterable[Word]) -> list[Word]:
    allowed = max_edits(suspect.word)
    ranked = sorted(
        (distance, word.word[0] != suspect.word[0], word)
        for word in words
        if word.term != suspect.term
        and 0 < (distance := edits(suspect.word, word.word, allowed)) <= allowed
    )
    return [word for _, _, word in ranked]


def _chosen(
    searchable: SearchableWords, candidates: Mapping[Suspect, list[Word]]
) -> dict[Suspect, Word]:
    """Choose for each word the nearest candidate in the user's chunks, then the most frequent."""
    han = {one: words for one, words in candidates.items() if one.is_han and words}
    others = {one: words for one, words in candidates.items() if one not in han}
    return _chosen_in_context(searchable, han) | _chosen_by_distance(searchable, others)


def _chosen_in_context(
    searchable: SearchableWords, candidates: Mapping[Suspect, list[Word]]
) -> dict[Suspect, Word]:
    """Choose Chinese words by the characters beside them."""
    chosen: dict[Suspect, Word] = {}
    for suspect, words in candidates.items():
        known = _visible(searchable, suspect, words)
        if known and not _is_ambiguous(suspect, known):
            evidence = {(suspect, tuple(known)): _evidence_in_context(suspect, known)}
            if found := _best(suspect, _find_matches(searchable, evidence)):
                chosen[suspect] = found[-1]
    return chosen


def _chosen_by_distance(
    searchable: SearchableWords, candidates: Mapping[Suspect, list[Word]]
) -> dict[Suspect, Word]:
    # The vocabulary includes words of documents that this user may not see. However many of them
    # are nearer, they must not hide a visible word: candidates are looked up until no better one
    # can come.
    undecided = dict(candidates)
    best: dict[Suspect, _Choice] = {}
    while undecided:
        wanted: dict[_Tried, Evidence] = {
            # Compare the word itself, not its stem, which other words of hidden documents may
            # share.
            (suspect, (word,)): Evidence(tsquery_and(word.term.split()), pattern(word.word))
            for suspect, words in undecided.items()
            for word in words[:_MAX_LOOKED_UP]
        }
        matches = _find_matches(searchable, wanted)
        for suspect in list(undecided):
            of_suspect = {tried: s for tried, s in matches.items() if tried[0] == suspect}
            options = [one for one in (best.get(suspect), _best(suspect, of_suspect)) if one]
            if options:
                best[suspect] = min(options)
            rest = undecided[suspect][_MAX_LOOKED_UP:]
            if not rest or (suspect in best and _closeness(suspect, rest[0]) > best[suspect][:2]):
                del undecided[suspect]
            else:
                undecided[suspect] = rest
    return {suspect: choice[-1] for suspect, choice in best.items()}


def _closeness(suspect: Suspect, word: Word) -> tuple[int, bool]:
    """Return the distance from the typed word, and whether the first letter differs."""
    distance = edits(suspect.word, word.word, max_edits(suspect.word))
    return distance, word.word[0] != suspect.word[0]


def _best(suspect: Suspect, found: Mapping[_Tried, list[str]]) -> _Choice | None:
    """Return the nearest word found, then the most frequent, in its most frequent spelling."""
    written: dict[str, Counter[str]] = defaultdict(Counter)
    for strings in found.values():
        for string in strings:
            plain = normalise(string).text.lower()
            written["".join(fold(string).text.split())]["".join(plain.split())] += 1
    choices = []
    for _, tried in found:
        for word in tried:
            if forms := written.get(word.word):
                surface = min(forms, key=lambda form: (-forms[form], form))
                # Chinese stays in the dictionary's script, and is converted to the reader's later.
                shown = word if suspect.is_han else word._replace(surface=surface)
                choices.append((*_closeness(suspect, word), -forms.total(), shown))
    return min(choices, default=None)


def _visible(
    searchable: SearchableWords,
    suspect: Suspect,
    words: Sequence[Word],
) -> list[Word]:
    """Return the words visible to this user, up to the number that makes a guess uncertain."""
    known: list[Word] = []
    for start in range(0, len(words), _MAX_IN_CONTEXT):
        batch = words[start : start + _MAX_IN_CONTEXT]
        wanted: dict[_Tried, Evidence] = {
            (suspect, (word,)): Evidence(tsquery_and(word.term.split()), pattern(word.word))
            for word in batch
        }
        found = _find_matches(searchable, wanted, max_matches=1)
        known += [word for word in batch if (suspect, (word,)) in found]
        if _is_ambiguous(suspect, known):
            break
    return known


def _find_matches(
    searchable: SearchableWords,
    wanted: Mapping[_Tried, Evidence],
    *,
    max_matches: int = _MAX_COUNTED,
) -> dict[_Tried, list[str]]:
    """Return the matches for each word in chunks, or in titles for words of a title operator."""
    chunks = {tried: evidence for tried, evidence in wanted.items() if not tried[0].in_title}
    titles = {
        tried: evidence.pattern
        for tried, evidence in wanted.items()
        if tried[0].in_title and evidence.pattern
    }
    found = searchable.matches(chunks, max_matches=max_matches)
    return found | searchable.title_matches(titles, max_matches=max_matches)


def _is_ambiguous(suspect: Suspect, words: Sequence[Word]) -> bool:
    """Return whether a short Chinese word without neighbours is close to too many words."""
    has_context = suspect.before or suspect.after or len(suspect.word) >= LONG_HAN_WORD
    return len(words) > (_MAX_IN_CONTEXT if has_context else _MAX_TRIED)


def _evidence_in_context(suspect: Suspect, words: Iterable[Word]) -> Evidence:
    """Return evidence of one of these words beside the same characters as in the query."""
    # One of two characters is too little to identify a Chinese word.
    terms = " | ".join(f"({tsquery_and(word.term.split())})" for word in words)
    either = "(?:" + "|".join(pattern(word.word) for word in words) + ")"
    if len(suspect.word) >= LONG_HAN_WORD or not (suspect.before or suspect.after):
        return Evidence(terms, either)
    sides = []
    if suspect.before:
        sides.append(f"(?<={pattern(suspect.before)}){either}")
    if suspect.after:
        sides.append(f"{either}(?={pattern(suspect.after)})")
    beside = (query_terms(side) for side in (suspect.before, suspect.after) if side)
    neighbours = " | ".join(f"({tsquery_and(each)})" for each in beside)
    return Evidence(f"({terms}) & ({neighbours})", "|".join(sides))


def _without_overlaps(chosen: dict[Suspect, Word]) -> list[tuple[Suspect, Word]]:
    """Return replacements that do not overlap, in the order of the text."""
    # Longer ones win: the more characters agree, the more likely the correction.
    taken: list[tuple[Suspect, Word]] = []
    for suspect, word in sorted(chosen.items(), key=lambda item: -len(item[0].word)):
        if all(suspect.end <= other.start or other.end <= suspect.start for other, _ in taken):
            taken.append((suspect, word))
    return sorted(taken, key=lambda pair: pair[0].start)


def _as_typed(question: str, typed: str, suspect: Suspect, word: Word) -> str:
    if suspect.is_han:
        return in_script_of(question, word.surface)
    return in_case_of(typed, word.surface)
