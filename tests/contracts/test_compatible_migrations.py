"""Old processes keep running while a newer version migrates, so migrations remove nothing in use.

A later version's migration removes what is no longer used, and says why that is safe:
REMOVES = "a sentence".
"""

from __future__ import annotations

import re

from portal.store import migrations

# Later migrations are checked; up to this one, everything was stopped for a migration.
FIRST = "0060"
TAKES_AWAY = re.compile(
    r"op\.drop_(table|column)|op\.rename_table|new_column_name|nullable=False\s*\)\s*$"
    r"|DROP (TABLE|COLUMN)|RENAME (TO|COLUMN)|SET NOT NULL",
    re.MULTILINE,
)
ADDS_WITHOUT_VALUE = re.compile(r"op\.add_column\([^\n]*nullable=False(?![^\n]*server_default)")


def upgrade_of(source: str) -> str:
    found = re.search(r"^def upgrade\(.*?(?=^def |\Z)", source, re.MULTILINE | re.DOTALL)
    return found[0] if found else ""


def takes_away(source: str) -> bool:
    upgrade = upgrade_of(source)
    return bool(TAKES_AWAY.search(upgrade) or ADDS_WITHOUT_VALUE.search(upgrade))


def test_migrations_take_nothing_away_that_running_processes_use() -> None:
    folder = migrations.MIGRATIONS_DIR / "versions"
    found = [path for path in sorted(folder.glob("*.py")) if path.name[:4] > FIRST]
    offending = [
        path.name
        for path in found
        if takes_away(text := path.read_text(encoding="utf-8")) and "\nREMOVES = " not in text
    ]
    assert offending == [], __doc__


def test_removals_and_required_columns_are_recognised() -> None:
    for line in (
        'op.drop_column("documents", "domain")',
        'op.rename_table("a", "b")',
        'op.alter_column("a", "b", new_column_name="c")',
        'op.add_column("a", sa.Column("b", sa.Text, nullable=False))',
        'op.execute("ALTER TABLE a ALTER b SET NOT NULL")',
    ):
        assert takes_away(f"def upgrade() -> None:\n    {line}\n"), line
        assert not takes_away(f"def upgrade():\n    pass\n\n\ndef downgrade():\n    {line}\n")
    for line in (
        'op.add_column("a", sa.Column("b", sa.Text, nullable=False, server_default="x"))',
        'op.create_table("a", sa.Column("b", sa.Text, nullable=False))',
        'op.drop_index("ix_a")',
    ):
        assert not takes_away(f"def upgrade() -> None:\n    {line}\n"), line
