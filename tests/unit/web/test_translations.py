"""Chinese and English are equals: nothing is said in one language only."""

from __future__ import annotations

import pytest
from babel.messages.catalog import Catalog
from flask_babel import force_locale

from portal.http import messages
from portal.ingest import media_types
from portal.web import translations

ZH = translations.load()["zh_Hans_CN"]


def test_every_message_is_translated_and_none_is_left_over():
    assert translations.main(["--check"]) == 0


def test_the_words_of_the_first_design_stand_as_given():
    assert ZH.gettext("Upload documents") == "上传文档"
    assert ZH.gettext("Delete") == "删除"


def test_a_missing_a_fuzzy_and_an_obsolete_message_are_found():
    wanted, ours = Catalog(), Catalog()
    for message_id in ("new", "unsure", "%(name)s is here"):
        wanted.add(message_id)
    ours.add("unsure", "也许", flags=["fuzzy"])
    ours.add("gone", "没了")
    ours.add("%(name)s is here", "%(nmae)s 在")
    assert translations.faults(ours, wanted) == [
        "missing: new",
        "fuzzy: unsure",
        "unknown place: %(name)s is here",
        "obsolete: gone",
    ]


def _kinds() -> set[str]:
    named = {name for _, name in (*media_types._SIGNATURES, *media_types._ZIP_KINDS)}
    return named | set(media_types._OFFICE_SUFFIXES.values())


@pytest.mark.parametrize("kind", sorted(_kinds()))
def test_every_kind_of_file_that_is_refused_has_its_chinese_name(app, kind):
    with app.test_request_context(), force_locale("zh_Hans_CN"):
        assert messages.translated(kind) != kind


@pytest.mark.parametrize("template", messages.TEMPLATES)
def test_no_phrase_shadows_another(app, template):
    values = {name: name for name in translations.PLACES.findall(template)}
    text = template % values if "%" in template else template
    with app.test_request_context(), force_locale("en"):
        assert messages.translated(text) == text


def test_numbers_inside_a_phrase_are_kept(app):
    with app.test_request_context(), force_locale("zh_Hans_CN"):
        words = messages.translated("2 of 9 pages have no text (pictures?): 3, 7")
        assert words == "共 9 页，其中 2 页没有文字（可能是图片）：3, 7"
        assert messages.translated("什么也不像") == "什么也不像"
