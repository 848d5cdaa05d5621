"""Every link between documentation pages has a target, and every page is linked."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")]
)
LINK = re.compile(r"\]\((?!\w+:)([^)\s#]*)(?:#([^)\s]+))?\)")


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub derives them."""
    text = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    found: dict[str, int] = {}
    for heading in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
        count = found.get(slug, 0)
        found[slug] = count + 1
        if count:
            found[f"{slug}-{count}"] = 1
    return set(found)


def test_every_link_has_a_target() -> None:
    links = [(page, *link) for page in PAGES for link in LINK.findall(page.read_text("utf-8"))]
    assert links
    for page, path, anchor in links:
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), (page, path)
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), (page, path, anchor)


def test_every_page_is_at_most_two_clicks_from_the_readme() -> None:
    def linked(page: Path) -> set[Path]:
        found = LINK.findall(page.read_text(encoding="utf-8"))
        return {(page.parent / path).resolve() for path, _ in found if path.endswith(".md")}

    first = linked(ROOT / "README.md")
    reached = first.union(*(linked(page) for page in first))
    assert set((ROOT / "docs").glob("*.md")) <= reached


def test_paths_that_the_ci_script_names_exist() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    named = re.findall(r"\b(?:tests|e2e)/[\w/.]+", script)
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []
