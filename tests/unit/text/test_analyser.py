from __future__ import annotations

import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from portal.text.terms.analyser import (
    MAX_TERM_CHARACTERS,
    MAX_TERM_LENGTH,
    analyse,
    index_terms,
    query_terms,
    tsquery_or,
)

MIXED = "知识门户 Knowledge PO-4711 データ Привет ﬁsh 李小明 café v0.8 -5 https://example.com/a?b=1"
any_text = (
    st.text()
    | st.text(alphabet="aé知識ﬁ\u0301\u0323\0\u00ad９İ𠮷カ한-.,'5v +#")
    | st.text(st.characters(categories=("L", "N", "P", "S", "Z", "M", "Cf", "Cs")))
)


def found_by(query: str, text: str) -> bool:
    return bool(set(query_terms(query)) & set(index_terms(text).split()))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("小明", "李小明住在北京。"),
        ("知識門戶", "知识门户"),
        ("著作权", "著作權"),
        ("running", "He runs daily"),
        ("Luther", "Luther’s theses"),
        ("email", "by e-mail"),
        ("PO-4711", "Order PO-4711 came"),
        ("po_4711", "Order PO-4711 came"),
        ("4711", "Order PO-4711 came"),
        ("0.8", "version v0.8"),
        ("1234", "1,234 items"),
        ("-5", "at -5 degrees"),
        ("C++", "written in C++."),
        ("ｋｎｏｗｌｅｄｇｅ", "Knowledge"),
        ("fish", "ﬁsh"),
        ("cafe", "Café"),
        ("STRASSE", "Straße"),
        ("istanbul", "İstanbul"),
        ("US", "in the U.S. today"),
        ("user@example.com", "write to user@example.com"),
        ("example.com", "https://example.com/a/b?x=1"),
        ("université", "l'université"),
        ("データ", "データベース"),
        ("한국어", "한국어를 배운다"),
        ("привет", "ПРИВЕТ!"),
        ("हिन्दी", "यह हिन्दी है"),
        ("บ้าน", "พักผ่อนที่บ้าน"),
        ("🎉", "done 🎉"),
        ("𠮷野家", "𠮷野家へ"),
        ("٣٤", "34"),
        ("⽂件", "文件"),
        ("know\u00adledge", "knowledge"),
        ("3e8", "3e8"),
    ],
)
def test_query_finds_text(query: str, text: str) -> None:
    assert found_by(query, text)


@pytest.mark.parametrize(("query", "text"), [("1.5", "15"), ("PO-4711", "PO-4712"), ("C", "C++x")])
def test_whole_codes_stay_apart(query: str, text: str) -> None:
    whole = query_terms(query)[0]
    assert whole not in index_terms(text).split() or query == "C"


def test_c_plus_plus_ranks_apart_from_c() -> None:
    assert "cplusplus" in index_terms("C++").split()
    assert "cplusplus" not in index_terms("C").split()


def test_question_words_are_dropped_but_never_all_words() -> None:
    assert query_terms("What is the solar plant?") == ("solar", "plant")
    assert query_terms("to be or not") == ("not",)
    assert query_terms("the") == ("the",)
    assert query_terms("知识门户是什么？") == ("知识", "门户")


def test_query_terms_are_unique_and_in_order() -> None:
    assert query_terms("solar wind solar") == ("solar", "wind")


@pytest.mark.parametrize("text", ["", "  \n", "…？！ --- ()"])
def test_text_without_words_has_no_terms(text: str) -> None:
    assert index_terms(text) == ""
    assert query_terms(text) == ()
    assert tsquery_or(query_terms(text)) == ""


def test_offsets_lead_to_the_original_characters() -> None:
    text = "ﬁsh ﷺ ｆｕｌｌ a\u0301\u0323bc \0知識\u00ad門戶 x\u0302y İz Straße"
    spans = {token.term: text[token.start : token.end] for token in analyse(text)}
    assert spans["fish"] == "ﬁsh"
    assert spans["صلى"] == "ﷺ"
    assert spans["full"] == "ｆｕｌｌ"
    assert spans["abc"] == "a\u0301\u0323bc"
    assert spans["知识"] == "知識"
    assert spans["门户"] == "門戶"
    assert spans["xy"] == "x\u0302y"
    assert spans["iz"] == "İz"
    assert spans["strass"] == "Straße"


@given(any_text)
def test_tokens_lie_in_the_text_in_order(text: str) -> None:
    tokens = analyse(text)
    assert all(0 <= token.start < token.end <= len(text) for token in tokens)
    assert [token.start for token in tokens] == sorted(token.start for token in tokens)
    assert sorted(token.term for token in tokens) == sorted(index_terms(text).split())


@given(any_text)
def test_every_term_is_letters_and_digits_only(text: str) -> None:
    for term in index_terms(text).split():
        assert term.isalnum()
        assert all(c <= "\uffff" for c in term)
        assert len(term.encode()) < 2000


@given(any_text)
def test_query_matches_a_document_of_the_same_words(text: str) -> None:
    assert set(query_terms(text)) <= set(index_terms(text).split())


@given(st.text(st.characters(categories=("L", "N")), min_size=1))
def test_letters_and_digits_always_yield_terms(text: str) -> None:
    # Unicode has a few letters, such as ﾞ, whose plain form is a mark on the letter before.
    assume(any(c.isalnum() for c in unicodedata.normalize("NFKC", text)))
    assert index_terms(text)


def test_long_unbroken_words_are_cut() -> None:
    assert all(len(term) <= MAX_TERM_LENGTH for term in index_terms("a" * 1000).split())


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "知识门户",
        "a,",
        "a.",
        "1,234",
        "ﬁ",
        "a-",
        "e\u0301\u0323",
        "\u0301\u0323",
        "🎉",
        "中a",
        "'",
    ],
)
def test_time_grows_linearly_with_the_length(unit: str) -> None:
    """Ten times the text may take ten times the time, not a hundred times."""

    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        best = float("inf")
        for _ in range(3):
            started = time.process_time()
            index_terms(text)
            best = min(best, time.process_time() - started)
        return best

    seconds(1000)
    assert seconds(200_000) < 40 * max(seconds(20_000), 0.001)


def test_threads_get_the_same_terms() -> None:
    texts = [f"{MIXED} running organisations {n}" for n in range(200)]
    expected = [index_terms(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(index_terms, texts)) == expected


def test_tsquery_quotes_its_special_characters() -> None:
    assert tsquery_or(("a", "b'c", "d\\e")) == "'a' | 'b''c' | 'd\\\\e'"


def test_first_of_very_many_terms_are_kept_whole() -> None:
    many = [f"word{number}" for number in range(MAX_TERM_CHARACTERS // 8)]
    kept = index_terms(" ".join(many))
    assert MAX_TERM_CHARACTERS - MAX_TERM_LENGTH <= len(kept) <= MAX_TERM_CHARACTERS
    first = index_terms(" ".join(many[: len(many) // 4]))
    assert len(first) < MAX_TERM_CHARACTERS
    assert kept.startswith(f"{first} ")
    assert set(kept.split()) <= {one for word in many for one in index_terms(word).split()}
