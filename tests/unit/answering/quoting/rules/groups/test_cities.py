"""Cities that texts name, and statements about other cities."""

from __future__ import annotations

import pytest

from portal.answering.quoting.phrasing import context_of
from portal.answering.quoting.rules.groups.cities import (
    find_cities,
    rows_of_other_cities,
    with_tier,
)
from portal.answering.quoting.rules.groups.named import find_named, names_others
from portal.answering.quoting.rules.kinds import Wanted
from portal.answering.quoting.statements import statements
from tests.factories.cases import for_each
from tests.unit.answering.sources import source


@pytest.mark.parametrize(
    ("text", "cities"),
    [
        ("去伦敦出差，酒店一晚最多能报多少？", {"London"}),
        ("How do I get from Hong Kong to Munich?", {"Hong Kong", "München"}),
        ("| 格拉斯哥 | 115 英镑 |", {"Glasgow"}),
        ("苏州市和武汉办公室", {"Suzhou", "Wuhan"}),
        ("hotel limit in new york per night, from vienna", {"New York", "Vienna"}),
        ("can i work outside in nice weather", set()),
        ("Paris Glasgow Central New York", {"Paris", "Glasgow", "New York"}),
        # Common words, other names and time zones are not cities.
        ("大都在树林里等", set()),
        ("The reading list of Anna Weber", set()),
        ("每天 18:00（北京时间）", set()),
        ("call at 9:00 London time", set()),
    ],
)
def test_cities_are_found_in_both_languages(text: str, cities: set[str]) -> None:
    assert find_cities(text) == cities


OTHERS = [
    ("When is the party in Wuhan?", "", "The party in Glasgow is on 11 December."),
    ("去伦敦出差每晚多少钱？", "出差", "武汉 | 480 元"),
    ("去伦敦出差每晚多少钱？", "Trips", "Glasgow: at most £115 a night."),
]
NOT_OTHERS = [
    ("When is the party?", "", "The party in Glasgow is on 11 December."),
    ("When is the party in Wuhan?", "", "The party is on 11 December."),
    ("When is the party in Wuhan?", "Wuhan", "We go there from Glasgow on 11 December."),
    ("When is the party in Wuhan?", "", "Only Glasgow has a party."),
    ("武汉的会议几点开始？", "", "每天 9:00（北京时间）开会。"),
]


@for_each("question", OTHERS)
def test_statement_about_another_city_is_recognised(question: tuple[str, str, str]) -> None:
    asked, context, text = question
    assert names_others(find_named(asked, Wanted.TIME), context, text)


@for_each("question", NOT_OTHERS)
def test_statement_that_may_be_about_the_city_is_kept(question: tuple[str, str, str]) -> None:
    asked, context, text = question
    assert not names_others(find_named(asked, Wanted.TIME), context, text)


def other_cities(question: str, title: str, *first_cells: str) -> list[str]:
    """Return the cities in question, each with the first cell of the row that applies to it."""
    table = "\n".join(["City | Hotel", *(f"{cell} | 100" for cell in first_cells)])
    one = source(1, table, title=title)
    rows = statements(one)
    found = rows_of_other_cities(question, rows, [context_of(one, row) for row in rows])
    return [f"{name} in {rows[place].cells[0]}" for place, name in found.items()]


@pytest.mark.parametrize(
    ("question", "title", "first_cells", "found"),
    [
        (
            "Hotel in Munich?",
            "Trips",
            ("Berlin", "All other cities"),
            ["Munich in All other cities"],
        ),
        ("成都住宿标准？", "差旅", ("北京、上海", "其他城市"), ["成都 in 其他城市"]),
        ("慕尼黑住宿标准？", "Trips", ("Berlin", "Elsewhere"), ["慕尼黑 in Elsewhere"]),
        # The city has its own row, or may be part of one.
        ("Hotel in Munich?", "Trips", ("Munich", "Berlin", "Elsewhere"), []),
        ("Hotel in Munich?", "Trips", ("Germany", "Paris", "Elsewhere"), []),
        ("成都住宿标准？", "差旅", ("一线城市", "其他城市"), ["成都 in 其他城市"]),
        ("上海住宿标准？", "差旅", ("一线城市", "其他城市"), []),
        ("成都住宿标准？", "差旅", ("一线城市", "二线城市", "其他城市"), []),
        # The rows may be about another country.
        ("东京住宿标准？", "国内差旅", ("北京", "其他城市"), []),
        ("Hotel in Munich and Rome?", "Trips", ("Berlin", "Elsewhere"), []),
        ("What does a hotel cost?", "Trips", ("Berlin", "Elsewhere"), []),
    ],
)
def test_row_of_all_other_cities_applies_to_a_city_without_a_row(
    question: str, title: str, first_cells: tuple[str, ...], found: list[str]
) -> None:
    assert other_cities(question, title, *first_cells) == found


@pytest.mark.parametrize(
    ("question", "text", "other"),
    [
        (
            "上海住一晚能报多少？",
            "一线城市住宿: 600; 其他城市住宿: 450",
            "一线城市住一晚能报多少？",
        ),
        (
            "成都住一晚能报多少？",
            "一线城市住宿: 600; 其他城市住宿: 450",
            "其他城市住一晚能报多少？",
        ),
        ("去深圳住宿标准", "一线城市每晚 600 元", "去一线城市住宿标准"),
        ("去深圳住宿标准", "住宿（北上广深）: 600; 住宿（其他城市）: 450", "去北上广深住宿标准"),
        # The text names the city itself, has no tier that the city surely is in, or none at all.
        ("去深圳住宿标准", "一线城市（北京、上海、广州、深圳）每晚 600 元", "去深圳住宿标准"),
        ("去成都住宿标准", "一线城市每晚 600 元，二线城市每晚 450 元", "去成都住宿标准"),
        ("去上海住宿标准", "新一线城市每晚 600 元", "去上海住宿标准"),
        ("去上海住宿标准", "除北上广深外，每晚 400 元", "去上海住宿标准"),
        ("去上海住宿标准", "一线城市以外每晚 400 元", "去上海住宿标准"),
        ("去上海住宿标准", "每晚 600 元", "去上海住宿标准"),
        ("去成都住宿标准", "一线城市 600 元，二线城市 500 元，其他城市 400 元", "去成都住宿标准"),
        ("去东京住宿标准", "国内一线城市 600 元，其他城市 450 元", "去东京住宿标准"),
        ("去成都住宿标准", "一线城市 600 元，其他费用实报实销", "去成都住宿标准"),
        ("Hotel in Chengdu?", "一线城市 600 元，其他城市 450 元", "Hotel in Chengdu?"),
        ("从上海去成都", "一线城市每晚 600 元，其他城市 450 元", "从上海去成都"),
    ],
)
def test_city_is_read_as_its_tier(question: str, text: str, other: str) -> None:
    assert with_tier(question, text) == other


def test_context_may_limit_tiers_to_one_country() -> None:
    text = "一线城市住宿: 600; 其他城市住宿: 450"
    assert with_tier("去东京住宿标准", text, "国内差旅标准") == "去东京住宿标准"
