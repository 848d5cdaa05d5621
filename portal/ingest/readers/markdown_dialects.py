"""Markdown rules for the syntax of site generators, which no page shows.

Tags of templates (Liquid, Jinja, Nunjucks, Hugo), lists of attributes (Kramdown, Pandoc), notes and
tabs of MkDocs, containers of VitePress, Docusaurus and Pandoc, and alerts of GitHub. Code keeps all
of them. Expressions such as `{{ name }}` stay in prose, where they may be a form's blanks.
"""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

from markdown_it import MarkdownIt, helpers
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

_MARKUP = re.compile(
    r"""\{%-?\s*comment\s*-?%\}[^{}]{0,1000}\{%-?\s*endcomment\s*-?%\}
    |\{%-?\s*(?P<tag>\w++)(?P<arguments>[^{}]{0,500})%\}
    |\{\{[<%][^{}]{0,500}[>%]\}\}
    |\{:[ ]?(?=[.#A-Za-z])(?!\w+(?:,|[ ]=>))[^{}\n]{0,300}\}
    |(?<=[)\]])\{[ ]?(?:[.#][A-Za-z]|[\w-]{2,40}=)[^{}\n]{0,300}\}
    |\{[ ]?[.#]{1,2}[A-Za-z][^{}\n]{0,300}\}(?=[ ]*(?:\n|\Z))""",
    re.VERBOSE,
)
# Tags whose arguments are files, conditions and names of variables. Other tags are written for a
# site and show their arguments: {% slack_channel "travel" %}.
_SILENT_TAGS = frozenset({
    "assign", "block", "call", "capture", "case", "elif", "else", "elsif", "extends", "for", "from",
    "highlight", "if", "import", "include", "layout", "link", "macro", "page", "post_url", "render",
    "set", "unless", "when",
})  # fmt: skip
_CODE_TAG = re.compile(r"(</?(?:pre|code)\b[^<>]*>)", re.IGNORECASE)
_ARGUMENT = re.compile(r"(?<![=\w])\"([^\"]*)\"")
_FILE = re.compile(r"[/\\{]|\.\w{2,5}$")
_TEMPLATE = re.compile(r"\{[{%]")
_ADDRESS = re.compile(r"(?:\{%[^{}]{0,300}%\}|\{\{[^{}]{0,300}\}\}|[^\s()<>{}])++")
_NOTE = re.compile(
    r'(?:!!!|\?\?\?\+?)[ \t]*[\w-][\w -]*(?:"([^"]*)")?[ \t]*|===[!+]?[ \t]+"([^"]*)"'
)
_CONTAINER = re.compile(r":{3,}[ \t]*(?:[A-Za-z][\w-]*)?[ \t]*(?:\[([^\]]*)\]|\{[^}]*\}|(.*))")
_NOTE_INDENT = 4


def extend(parser: MarkdownIt) -> None:
    """Add the rules to a parser of CommonMark."""
    parser.inline.ruler.before("link", "site_markup", _site_markup)
    parser.block.ruler.before("fence", "note", _note, {"alt": ["paragraph"]})
    parser.block.ruler.before("fence", "container", _container, {"alt": ["paragraph"]})
    parser.options["alerts"] = True
    shared: Any = SimpleNamespace(**{**vars(helpers), "parseLinkDestination": _destination})
    parser.helpers = shared


def without_markup(text: str) -> str:
    """Return HTML without tags of templates, except in code. Linear in len(text)."""
    if "{" not in text:
        return text
    shown, depth = [], 0
    for part in _CODE_TAG.split(text):
        if _CODE_TAG.fullmatch(part):
            depth = max(0, depth + (-1 if part.startswith("</") else 1))
        shown.append(part if depth else _MARKUP.sub(_shown, part))
    return "".join(shown)


def _shown(markup: re.Match[str]) -> str:
    """Return what the page shows for a tag: its last argument, unless that is a file."""
    if not markup["tag"] or markup["tag"] in _SILENT_TAGS:
        return ""
    arguments = _ARGUMENT.findall(markup["arguments"])
    return "" if not arguments or _FILE.search(arguments[-1]) else arguments[-1]


def _site_markup(state: StateInline, silent: bool) -> bool:
    markup = _MARKUP.match(state.src, state.pos, state.posMax)
    if markup is None:
        return False
    if not silent:
        state.pending += _shown(markup)
    state.pos = markup.end()
    return True


def _destination(source: str, start: int, end: int) -> Any:
    """Parse the address of a link; "#" stands for one that a site generator fills in."""
    address = _ADDRESS.match(source, start, end)
    if address is None or not _TEMPLATE.search(address.group()):
        return helpers.parseLinkDestination(source, start, end)
    return SimpleNamespace(ok=True, pos=address.end(), str="#")


def _note(state: StateBlock, line: int, last: int, silent: bool) -> bool:
    """Read a note, or a tab, with the indented lines below it."""
    marker = _NOTE.fullmatch(_line(state, line))
    if marker is None or state.is_code_block(line):
        return False
    indent = state.blkIndent + _NOTE_INDENT
    end = following = line + 1
    while following < last and (state.isEmpty(following) or state.sCount[following] >= indent):
        following += 1
        end = end if state.isEmpty(following - 1) else following
    if end == line + 1:
        return False
    if silent:
        return True
    state.push("note_open", "div", 1)
    _add_title(state, marker[1] or marker[2] or "")
    outer_indent, outer_end = state.blkIndent, state.lineMax
    state.blkIndent, state.lineMax = indent, end
    state.md.block.tokenize(state, line + 1, end)
    state.blkIndent, state.lineMax = outer_indent, outer_end
    state.push("note_close", "div", -1)
    state.line = end
    return True


def _container(state: StateBlock, line: int, _last: int, silent: bool) -> bool:
    """Leave out the line that begins or ends a container, except for its title."""
    marker = _CONTAINER.fullmatch(_line(state, line))
    if marker is None or state.is_code_block(line):
        return False
    if not silent:
        _add_title(state, marker[1] or marker[2] or "")
        state.line = line + 1
    return True


def _add_title(state: StateBlock, title: str) -> None:
    if title := title.strip(" \t:"):
        state.push("paragraph_open", "p", 1)
        token = state.push("inline", "", 0)
        token.content, token.children = title, []
        state.push("paragraph_close", "p", -1)


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
