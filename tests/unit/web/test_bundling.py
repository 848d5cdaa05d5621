"""Bundles: modules follow those that they need, and some cannot be bundled."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.web import assets
from portal.web.bundling import bundle_scripts


def test_bundle_has_each_module_once_and_before_its_users(tmp_path: Path) -> None:
    (tmp_path / "main.js").write_text(
        'import { b } from "./b.js";\nimport { c as d } from "./c.js";\nb();\n'
    )
    (tmp_path / "b.js").write_text('import { c } from "./c.js";\nexport function b() { c(); }\n')
    (tmp_path / "c.js").write_text("export async function c() {}\n")
    found = bundle_scripts(tmp_path / "main.js")
    assert "export " not in found
    assert "import " not in found
    assert found.index("const $c") < found.index("const $b") < found.index("const $main")
    assert found.count("async function c()") == 1
    assert "const { c: d } = $c;" in found


@pytest.mark.parametrize(
    "line", ['import x from "./x.js";', "export default 1;", 'import { a } from "./main.js";']
)
def test_module_that_cannot_be_bundled_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "main.js").write_text(f"{line}\n")
    with pytest.raises(ValueError, match=r"main\.js|main > main"):
        bundle_scripts(tmp_path / "main.js")


def test_bundles_hold_all_style_sheets_and_modules_of_pages() -> None:
    sheets = {path.stem for path in (assets.STATIC / "css").glob("*.css")}
    assert sheets - set(assets.SHEETS) <= {"tokens-dark", "tokens-contrast"}
    script = assets.bundle("app.js").decode()
    modules = {path.stem for path in (assets.STATIC / "js").glob("*.js")} - {"early", "api-docs"}
    missing = {name for name in modules if f"const ${name.replace('-', '_')} = " not in script}
    assert not missing
