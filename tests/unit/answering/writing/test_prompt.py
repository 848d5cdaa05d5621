"""A prompt stays within its budget, with whole chunks in order."""

from __future__ import annotations

import random

import pytest

from portal.answering.writing import prompt
from portal.domain.answering import SearchCall, Turn
from portal.text.counting.token_bound import token_bound
from tests.unit.answering.sources import source

ZH = (
    "知识门户是一个可以自行部署的系统，人们把文件放进去，再向它提问。"
    "每一个回答都会注明出处，龘靐齉爩，繁體中文資料庫與檢索。"
)
EN = (
    "The portal keeps documents, searches them, and answers questions with citations; "
    "antidisestablishmentarianism, PostgreSQL 18.6, https://example.org/a?b=c, 3.14159, e-mail. "
)
ODD = "🎉Ω한국어データ \u202e\t<|im_start|>[12] 0xDEADBEEF qzxjkv ÀÉ ﷺ\n\n| a | b |"


def random_text(choose, language):
    alphabet = {"zh": ZH, "en": EN}[language]
    words = list(alphabet) if language == "zh" else alphabet.split(" ")
    if choose.random() < 0.2:
        words += list(ODD)
    joint = "" if language == "zh" else " "
    return joint.join(choose.choice(words) for _ in range(choose.randrange(1, 500)))


@pytest.mark.parametrize("language", ["zh", "en"])
def test_budget_is_never_exceeded_over_a_thousand_contexts(language):
    choose = random.Random(language)
    for _ in range(500):
        sources = [
            source(number, random_text(choose, language), title=random_text(choose, language)[:200])
            for number in range(1, choose.randrange(2, 12))
        ]
        budget = choose.choice([2000, 2000, prompt.MIN_TOKEN_BUDGET, 600, 1000])
        made = prompt.build(sources, language=language, token_budget=budget, can_search=True)
        assert token_bound(made.system) <= made.tokens <= budget
        fitted = len(made.sources)
        assert fitted >= 1
        assert list(made.sources) == sources[:fitted], "whole passages, the first, in order"
        is_cut = prompt.as_data(sources[0].text) not in made.system
        assert not (is_cut and fitted > 1)
        for one in made.sources[is_cut:]:
            assert prompt.as_data(one.text) in made.system
        if not is_cut and fitted < len(sources):
            more = sources[: fitted + 1]
            bigger = prompt.build(more, language=language, token_budget=10**6, can_search=True)
            assert bigger.tokens > budget, "what would have fitted is not left out"


@pytest.mark.parametrize("language", ["zh", "en", "other"])
@pytest.mark.parametrize(
    ("title", "text"), [("龘靐齉爩" * 40, "龘靐齉爩。" * 200), ("Leave " * 40, "\U0001f389" * 500)]
)
def test_smallest_budget_holds_the_beginning_of_the_worst_chunk(language, title, text):
    whole = source(999, text, title=title, page=99_999, page_label="Ⅷ" * 100)
    made = prompt.build(
        [whole], language=language, token_budget=prompt.MIN_TOKEN_BUDGET, can_search=True
    )
    assert made.sources == (whole,)
    assert token_bound(made.system) <= made.tokens <= prompt.MIN_TOKEN_BUDGET
    (shown,) = [line for line in made.system.splitlines() if line.endswith("…") and line[0] in text]
    assert text.startswith(shown.removesuffix("…"))
    assert token_bound(shown) >= 40


# The largest of the token counts by the real vocabularies (cl100k, o200k and XLM-R).
COUNTED = [
    ("知识门户", 5),
    ("每年的年假为二十五天，需提前两周申请。", 21),
    ("在歐洲，梵語的學術研究，由德國學者陸特和漢斯雷頓開創。", 45),
    ("龘靐齉爩", 9),
    ("What part of Luther's career was one of his most productive?", 13),
    ("It came into force on 1 January 1999, together with Regulation (EC) No 1103/97.", 25),
    ("PORTAL_CHAT__API_BASE=https://example.org/v1", 12),
]


@pytest.mark.parametrize(("text", "counted"), COUNTED)
def test_token_bound_is_not_below_the_counts_of_real_vocabularies(text, counted):
    assert counted <= token_bound(text) <= 4 * counted


def test_token_bound_of_other_text_is_at_least_its_bytes_or_letters():
    assert token_bound("\U00020000" * 10) >= 40
    assert token_bound("한국어") >= 9
    assert token_bound("XKQZW" * 20) >= 100
    assert token_bound("8" * 50) >= 50
    assert token_bound("") == 0


def test_prompt_names_the_language_and_the_numbers():
    made = prompt.build([source(3), source(7)], language="zh")
    assert "Chinese" in made.system
    assert "[3]" in made.system
    assert "[7]" in made.system
    assert "English" in prompt.build([], language="en").system


def test_nothing_found_is_reported():
    made = prompt.build([], language="en")
    assert made.sources == ()
    assert "nothing was found" in made.system


def test_history_keeps_the_last_turns_within_its_budget():
    turns = [
        Turn("user" if place % 2 == 0 else "assistant", f"turn {place} " + "word " * 50)
        for place in range(9)
    ]
    kept = prompt.within_budget(turns, 400)
    assert kept[-1] == turns[-1]
    assert 1 < len(kept) < len(turns)
    assert kept[0].role == "user"
    assert sum(token_bound(turn.content) for turn in kept) <= 400
    assert prompt.within_budget(turns, 0) == (turns[-1],)


def test_markers_of_earlier_answers_are_removed_from_the_history():
    turns = [Turn("user", "Why [1]?"), Turn("assistant", "So [1], `x[1]`."), Turn("user", "And?")]
    kept = prompt.within_budget(turns, 1000)
    assert [turn.content for turn in kept] == ["Why [1]?", "So , `x[1]`.", "And?"]


def test_search_exchange_contains_numbers_but_no_text_of_documents():
    call = SearchCall("call_1", "“年假”")
    asked, said = prompt.tool_exchange(call, [source(4, "Secret text.")])
    assert asked["tool_calls"][0]["function"]["arguments"] == '{"query": "“年假”"}'
    assert said["tool_call_id"] == "call_1"
    assert "[4]" in said["content"]
    assert "Secret" not in said["content"]
    assert "Nothing" in prompt.tool_exchange(call, [])[1]["content"]
