from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.domain.documents import ExtractedText, Heading, MediaType, Page
from portal.ingest.chunking import HARD_CAP, TARGET_TOKENS, split
from portal.ingest.extraction import extract
from portal.ingest.limits import FileToRead
from portal.text.counting.tokens import token_weight
from tests.factories import files

CHINESE = (
    "知识门户把文档分成段落。每个段落都有出处，可以打开原文！这样读者能核对引用吗？当然可以。\n\n"
)
ENGLISH = (
    "The portal splits documents into passages. Dr. Smith read v0.8 of it. Every one is cited!\n\n"
)

texts = st.text(max_size=400) | st.lists(
    st.sampled_from(
        [CHINESE, ENGLISH, "a" * 90, "\n", " ", "知" * 70, "x. ", "# ", "🎉", "a\u0301"]
    ),
    max_size=30,
).map("".join)


@st.composite
def extracted_texts(draw: st.DrawFn) -> ExtractedText:
    text = draw(texts)
    places = st.lists(st.integers(0, max(0, len(text) - 1)), max_size=6, unique=True).map(sorted)
    headings = [Heading(1 + i % 3, f"H{i}", start) for i, start in enumerate(draw(places))]
    bounds = [0, *draw(places), len(text)]
    pages = [Page(n, a, b) for n, (a, b) in enumerate(pairwise(bounds), 1)]
    return ExtractedText(text=text, extractor="test", pages=tuple(pages), headings=tuple(headings))


@given(extracted_texts(), st.sampled_from([20, 60, 300]))
def test_chunks_are_exact_ranges_that_hold_every_visible_character(
    extracted: ExtractedText, target: int
) -> None:
    text = extracted.text
    chunks = split(extracted, target_tokens=target)
    end = 0
    for index, chunk in enumerate(chunks):
        assert chunk.index == index
        assert chunk.content == text[chunk.char_start : chunk.char_end]
        assert chunk.content == chunk.content.strip() != ""
        assert chunk.char_start >= end
        assert not text[end : chunk.char_start].strip()
        assert token_weight(chunk.content) <= HARD_CAP * target + 1
        end = chunk.char_end
    assert not text[end:].strip()
    assert split(extracted, target_tokens=target) == chunks


def test_chunks_end_with_sentences_and_are_about_as_long_as_wanted() -> None:
    for unit in (CHINESE, ENGLISH):
        chunks = split(ExtractedText(text=unit * 60, extractor="test"))
        assert all(chunk.content[-1] in "。！？.!" for chunk in chunks)
        weights = [token_weight(chunk.content) for chunk in chunks]
        assert all(0.5 * TARGET_TOKENS <= weight <= HARD_CAP * TARGET_TOKENS for weight in weights)


def test_heading_path_and_page_come_from_where_a_chunk_begins(tmp_path: Path) -> None:
    body = ENGLISH * 20
    source = f"# Guide\n\n{body}\n## Install\n\n{body}\n### Linux\n\n{body}\n## Use\n\n{body}"
    path = files.write_text(tmp_path / "a.md", source)
    chunks = split(extract(FileToRead(path, "a.md"), MediaType.MARKDOWN))
    seen = list(dict.fromkeys(chunk.heading for chunk in chunks))
    assert seen == ["Guide", "Guide › Install", "Guide › Install › Linux", "Guide › Use"]
    assert any(chunk.content.startswith("Install\n") for chunk in chunks)


def test_pages_are_counted_from_one_and_empty_pages_have_none(tmp_path: Path) -> None:
    path = files.write_pdf(
        tmp_path / "a.pdf", [["第一页的内容。"] * 40, [" "], ["第三页的内容。"] * 40]
    )
    extracted = extract(FileToRead(path, "a.pdf"), MediaType.PDF)
    chunks = split(extracted)
    assert {chunk.page for chunk in chunks} == {1, 3}
    for chunk in chunks:
        assert ("第一页" in chunk.content[:4]) == (chunk.page == 1)


@pytest.mark.parametrize(
    "lines",
    [
        ["部件 | 数量", *(f"风扇 {n} | {n}" for n in range(20))],
        ["def gate(n):", *(f"    open(gate={n})" for n in range(15)), "    return n"],
        [f"{n}. Turn the key of gate {n}." for n in range(1, 16)],
    ],
)
def test_tables_code_and_lists_stay_whole_if_they_fit(lines: list[str]) -> None:
    block = "\n".join(lines)
    for sentences in range(0, 30, 3):
        text = f"{ENGLISH.strip()} " * sentences + f"\n\nThe title:\n\n{block}\n\n{CHINESE}"
        chunks = split(ExtractedText(text=text, extractor="test"))
        (whole,) = [chunk for chunk in chunks if block in chunk.content]
        assert token_weight(whole.content) <= HARD_CAP * TARGET_TOKENS
    long = "\n".join(lines * 8)
    assert len(split(ExtractedText(text=long, extractor="test"))) > 1


def test_short_sections_share_a_chunk() -> None:
    text = "A\n\none.\n\nB\n\ntwo."
    headings = (Heading(1, "A", 0), Heading(1, "B", 9))
    chunks = split(ExtractedText(text=text, extractor="test", headings=headings))
    assert [chunk.content for chunk in chunks] == [text]


def test_text_without_words_has_no_chunks() -> None:
    assert split(ExtractedText(text=" \n\n ", extractor="test")) == []


@pytest.mark.parametrize("unit", ["a", "知识门户", "知识。", "word ", "🎉"])
def test_a_megabyte_in_one_line_is_cut_in_bounded_time(unit: str) -> None:
    text = unit * (1_000_000 // len(unit.encode()))
    chunks = split(ExtractedText(text=text, extractor="test"))
    assert "".join(p.content for p in chunks).replace(" ", "") == text.replace(" ", "")
