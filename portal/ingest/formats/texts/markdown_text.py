"""Plain, readable text from the events of `readers.markdown_reader`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from portal.ingest.formats.texts.html_text import HtmlText
from portal.ingest.formats.texts.readable_text import ReadableText, with_address
from portal.text.layout.tasks import with_task_box


def write_events(readable: ReadableText, events: Iterable[tuple[str, Any]]) -> None:
    """Add the text that a reader of the rendered page sees."""
    for kind, value in events:
        _ACTIONS[kind](readable, value)


def _add_paragraph(readable: ReadableText, parts: Sequence[tuple[str, Any]]) -> None:
    text = inline_text(parts)
    if readable.in_row:
        readable.add_cell(text)
    else:
        text = text.strip()
        readable.add_paragraph(with_task_box(text) if readable.in_list else text)
    for kind, value in parts:
        if kind == "image":
            readable.add_image(value)


def _open_footnote(readable: ReadableText, number: int) -> None:
    readable.open_list(number)
    readable.open_item(is_note=True)


_ACTIONS: Mapping[str, Callable[[ReadableText, Any], None]] = {
    "heading": lambda readable, value: readable.add_heading(value[0], inline_text(value[1])),
    "paragraph": _add_paragraph,
    "list": lambda readable, first: readable.open_list(first),
    "/list": lambda readable, _: readable.close_list(),
    "item": lambda readable, _: readable.open_item(),
    "footnote": _open_footnote,
    "/footnote": lambda readable, _: readable.close_list(),
    "table": lambda readable, _: readable.open_table(),
    "row": lambda readable, is_header: readable.open_row(is_header=is_header),
    "/row": lambda readable, _: readable.close_row(),
    "/table": lambda readable, _: readable.close_table(),
    "code": lambda readable, code: readable.add_code(code),
    "html": lambda readable, events: HtmlText(readable).add_events(events),
    "block": lambda readable, text: readable.add_block(text),
}


def inline_text(parts: Iterable[tuple[str, Any]]) -> str:
    texts: list[str] = []
    links: list[tuple[str, int]] = []
    for kind, value in parts:
        if kind == "text":
            texts.append(value)
        elif kind == "link":
            links.append((value, len(texts)))
        elif kind == "/link" and links:
            address, first = links.pop()
            texts[first:] = [with_address("".join(texts[first:]), address)]
    return "".join(texts)
