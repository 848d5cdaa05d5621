"""Words are translated both ways, and texts are compared by the translations they contain."""

from __future__ import annotations

import gzip
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError

import pytest

from portal.text.terms import lexicon
from portal.text.terms.analyser import index_terms, query_terms
from portal.text.terms.lexicon import share_of_best, translated_share, translates, translations


def share(query: str, text: str) -> float:
    terms = query_terms(query)
    return translated_share(terms, translations(terms), index_terms(text))


@pytest.mark.parametrize(
    ("query", "sense"),
    [
        ("押金", ("deposit",)),
        ("押金", ("down", "payment")),  # Several words are one sense.
        ("deposit", ("押金",)),
        ("warranties", ("保修",)),  # By stem.
        ("meeting room", ("会议室",)),  # By phrase.
        ("會議室", ("meet", "room")),  # In either script.
        ("年假", ("annual", "leav")),  # The analyser splits it into 年 and 假.
        ("annual leave", ("年", "假")),
        ("杭州", ("hangzhou",)),  # Not "…, capital of Zhejiang province".
        ("London", ("伦敦",)),
        # Words of the workplace that the dictionary lacks.
        ("门禁卡", ("badg",)),
        ("工资", ("salari",)),
        ("access card", ("门禁卡",)),
        ("work from home", ("居家", "办公")),
    ],
)
def test_words_and_phrases_have_their_translations(query: str, sense: tuple[str, ...]) -> None:
    assert any(sense in senses for senses in translations(query_terms(query)))


def test_unknown_words_single_characters_and_notes_have_no_translation() -> None:
    assert translations(["xyzzy", "好", "4711"]) == [(), (), ()]
    assert not any("cl" in sense for sense in translations(["电池"])[0])


def test_text_with_the_translations_has_the_larger_share() -> None:
    right = "A deposit of two months' rent is due when the lease is signed."
    wrong = "The canteen is open from eight to ten."
    assert share("签租约时押金交多少", right) > share("签租约时押金交多少", wrong)
    assert share("How much is the deposit for the warehouse?", "仓库押金为两个月租金。") > 0.5


def test_numbers_and_names_in_both_languages_count() -> None:
    assert share("PO-4711", "订单 PO-4711 已发货") == 1.0
    assert share("PO-4711", "订单已发货") == 0.0


def test_part_of_a_sense_with_its_last_term_counts_in_part() -> None:
    senses = [("annual", "leav"), ("holiday",)]
    assert share_of_best(senses, {"leav"}) == 0.5
    assert share_of_best(senses, {"annual"}) == 0.0
    assert share_of_best(senses, {"annual", "holiday"}) == 1.0
    assert share_of_best([], {"annual"}) == 0.0


def test_without_terms_there_is_no_share() -> None:
    assert translated_share((), [], "annual leav") == 0.0


def test_only_chinese_and_english_are_translated() -> None:
    assert translates("zh", "en")
    assert translates("en", "zh")
    assert not any(map(translates, ["en", "other", "en"], ["en", "en", "other"]))


def test_searches_that_begin_together_read_the_dictionary_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    entry = "电池 电池 [dian4 chi2] /battery/\n"
    path = tmp_path / "data" / "cedict_1_0_ts_utf-8_mdbg.txt.gz"
    path.parent.mkdir()
    path.write_bytes(gzip.compress(entry.encode()))
    opened: list[str] = []
    together = Barrier(2)

    def files(package: str) -> Path:
        opened.append(package)
        with suppress(BrokenBarrierError):
            together.wait(timeout=0.2)  # Give the other thread time to open it too.
        return tmp_path

    monkeypatch.setattr(lexicon, "files", files)
    monkeypatch.setattr(lexicon, "_lexicons", {})
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(translations, [["电池"], ["电池"]]))
    assert found == [[(("batteri",),)]] * 2
    assert len(opened) == 1
