"""The words in which the model reads a statement."""

from __future__ import annotations

from dataclasses import replace

import pytest

from portal.answering.quoting.phrasing import as_read, spelled_out, with_units
from portal.answering.quoting.statements import Statement


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (
            "Ask Hannah at hannah@nord.example.",
            "Ask Hannah at the e-mail address hannah@nord.example.",
        ),
        ("发票发到 fp@nord.example。", "发票发到 邮箱 fp@nord.example。"),
        (
            "Request leave at hr.example.com/leave.",
            "Request leave at the web address hr.example.com/leave.",
        ),
        ("请登录 https://hr.example.com 申请。", "请登录 网址 hr.example.com 申请。"),
        ("E-mail: hannah@nord.example", "E-mail: hannah@nord.example"),
        ("The website is https://hr.example.com", "The website is https://hr.example.com"),
        ("Handbook (https://hr.example.com/a) of 2026", "Handbook of 2026"),
        ("v2.1/v2.2 costs 5.50/month", "v2.1/v2.2 costs 5.50/month"),
        ("Sat 9–17", "Saturday 9–17"),
    ],
)  # fmt: skip
def test_addresses_are_labelled_as_addresses(text: str, read: str) -> None:
    assert as_read(text) == read


def test_unit_of_a_table_may_be_in_its_heading() -> None:
    row = Statement(0, 1, "二、住宿标准（每晚上限，元）", ("工程师", "550"), ("职级", "一类城市"))
    assert "550 元" in with_units(row)
    assert "550 元" in with_units(replace(row, context="住宿上限（元/晚，含税）"))
    assert "元" not in with_units(replace(row, header=("职级", "人数（人）")))


def test_unit_may_be_the_last_word_of_a_header() -> None:
    cells, header = ("tripod", "5.4", "135", "3"), ("item", "weight_kg", "Rate EUR", "per night")
    said = with_units(Statement(0, 1, "", cells, header))
    of_row = ("餐补（元/天）", "70", "110")
    assert "110 元/天" in with_units(Statement(0, 1, "", of_row, ("项目", "J1", "J3")))
    assert said == "tripod  item; 5.4 kg weight kg; 135 EUR Rate EUR; 3  per night"


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("Peak (CNY/night)", "Peak (CNY/night) price: 96"),
        ("Peak (£ per night)", "Peak (£ per night) price: 96"),
        ("旺季（元/晚）", "旺季（元/晚）价格: 96"),
        ("洗涤费（元/件）", "洗涤费（元/件）: 96"),
        ("Daily rate (EUR/day)", "Daily rate (EUR/day): 96"),
        ("Leeds (GBP)", "Leeds (GBP): 96"),
        ("Size (m²)", "Size (m²): 96"),
    ],
)
def test_amount_per_unit_is_read_as_a_price(name: str, read: str) -> None:
    assert spelled_out(Statement(0, 1, cells=("96",), header=(name,)), "") == read
