"""Translations, stored as .po files and compiled in memory when the portal starts.

`python -m portal.web.translations --update` updates the .po files with the messages in the code and
the templates; ``--check`` fails if a translation is missing, obsolete or fuzzy.
"""

from __future__ import annotations

import argparse
import re
import sys
from functools import cache
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir
from babel.messages.frontend import parse_mapping_cfg
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from babel.support import Translations

from portal import errors

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "translations"
# Errors that take a reason: its template is their first argument.
_REASONED = {
    error.__name__
    for error in errors.tree(errors.PortalError)
    if "%(reason)s" in error.message and not issubclass(error, errors.CommandRefused)
}
KEYWORDS = {**DEFAULT_KEYWORDS, **dict.fromkeys(["N_", "_l", *sorted(_REASONED)])}
PLACES = re.compile(r"%\((\w+)\)")


@cache
def load() -> dict[str, Translations]:
    """Return compiled catalogs by locale, such as ``zh_Hans_CN``, loaded once per process."""
    catalogs = {}
    for path in sorted(FOLDER.glob("*/LC_MESSAGES/messages.po")):
        compiled = BytesIO()
        write_mo(compiled, _read(path))
        compiled.seek(0)
        catalogs[path.parents[1].name] = Translations(compiled)
    return catalogs


def extract() -> Catalog:
    """Collect every message in the code and the templates."""
    with (ROOT / "babel.cfg").open(encoding="utf-8") as mapping:
        methods, options = parse_mapping_cfg(mapping)  # type: ignore[no-untyped-call]
    catalog = Catalog(project="knowledge-portal", charset="utf-8")
    found = extract_from_dir(ROOT, methods, options, keywords=KEYWORDS, comment_tags=("Note:",))
    for file_name, _line, message, comments, message_context in sorted(found, key=lambda m: m[:2]):
        catalog.add(
            message,
            locations=[(Path(file_name).as_posix(), 0)],
            auto_comments=comments,
            context=message_context,
        )
    return catalog


def faults(catalog: Catalog, wanted: Catalog) -> list[str]:
    """Return the faults of `catalog`, one line each; empty if it is complete and up to date."""
    found = []
    for message in wanted:
        if not message.id:
            continue
        ours = catalog.get(message.id, message.context)
        text = str(message.id)
        if ours is None or not _strings(ours.string):
            found.append(f"missing: {text}")
        elif ours.fuzzy:
            found.append(f"fuzzy: {text}")
        elif any(set(PLACES.findall(s)) - _places(message.id) for s in _strings(ours.string)):
            found.append(f"unknown place: {text}")
    obsolete = [str(m.id) for m in catalog if m.id and wanted.get(m.id, m.context) is None]
    obsolete += [str(m.id) for m in catalog.obsolete.values()]
    return found + [f"obsolete: {text}" for text in obsolete]


def update(path: Path, wanted: Catalog) -> None:
    """Rewrite `path` with the messages of `wanted`, keeping its translations."""
    catalog = _read(path)
    catalog.update(wanted, no_fuzzy_matching=True, update_creation_date=False)
    catalog.obsolete.clear()
    with path.open("wb") as file:
        write_po(file, catalog, width=96, sort_by_file=True, include_lineno=False)


def _read(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=path.parents[1].name, domain="messages")


def _strings(string: str | list[str] | tuple[str, ...] | None) -> list[str]:
    strings = [string] if isinstance(string, str) else list(string or ())
    return strings if all(strings) else []


def _places(message_id: str | list[str] | tuple[str, ...]) -> set[str]:
    ids = [message_id] if isinstance(message_id, str) else list(message_id)
    return {place for text in ids for place in PLACES.findall(text)}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m portal.web.translations")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="fail unless all are translated")
    action.add_argument("--update", action="store_true", help="bring the .po files up to date")
    chosen = parser.parse_args(arguments)
    wanted = extract()
    paths = sorted(FOLDER.glob("*/LC_MESSAGES/messages.po"))
    if chosen.update:
        for path in paths:
            update(path, wanted)
    wrong = [f"{path.parents[1].name}: {f}" for path in paths for f in faults(_read(path), wanted)]
    for line in wrong:
        sys.stderr.write(f"{line}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
