"""The Markdown of answers, without links and images."""

from __future__ import annotations

from markdown_it import MarkdownIt

# Links, images and addresses stay text: nothing remote is loaded, and no document can send its
# readers anywhere.
_LEFT_AS_TEXT = ("link", "image", "autolink", "html_inline", "html_block", "reference", "lheading")


def answer_parser() -> MarkdownIt:
    """Return a new parser, which keeps the line breaks of an answer."""
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True})
    return parser.enable("table").disable(_LEFT_AS_TEXT)
