"""Search settings: what administrators change while the portal serves."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from annotated_types import Ge, Le
from apiflask import APIBlueprint
from flask import redirect, render_template, request, url_for
from flask_babel import format_decimal, gettext
from pydantic import ValidationError
from werkzeug.wrappers import Response

from portal.domain.search import Fusion, Normalisation
from portal.errors import N_, InvalidInput
from portal.http import context
from portal.http.messages import error_message
from portal.services.search import dynamic_config
from portal.services.search.dynamic_config import DynamicConfig
from portal.web.layout import remember

blueprint = APIBlueprint("admin_search", __name__, enable_openapi=False, url_prefix="/admin/search")

Answer = Response | str | tuple[str, int]

# A label and what it does, for each key, in the order of the page.
WORDS = {
    "semantic_weight": (
        N_("Weight of meaning"),
        N_("How much likeness of meaning counts; only its share of both weights matters."),
    ),
    "bm25_weight": (
        N_("Weight of words"),
        N_("How much the match of words counts. One of the two weights must be above 0."),
    ),
    "fusion": (
        N_("Fusion"),
        N_("How the two lists become one: by weighted scores, or by the ranks alone."),
    ),
    "normalisation": (
        N_("Normalisation"),
        N_("How both scores are brought to one scale before they are weighted."),
    ),
    "rrf_k": (
        N_("Constant of reciprocal ranks"),
        N_("The larger, the less the first places count more than the next. For ranks only."),
    ),
    "top_n": (
        N_("Results of a search"),
        N_("How many results a program gets that does not say how many it wants."),
    ),
    "confidence_threshold": (
        N_("Warn below this confidence"),
        N_("Results with less are marked, so that people check them."),
    ),
    "domain_boost": (
        N_("Boost of the preferred domain"),
        N_("What passages of a person's preferred domain get on top of their score."),
    ),
    "context_token_budget": (
        N_("Tokens for an answer"),
        N_("How much text of passages an answer may be made from, in tokens."),
    ),
}
WEIGHTS = ("semantic_weight", "bm25_weight")
CHOICES: dict[str, dict[StrEnum, str]] = {
    "fusion": {Fusion.WEIGHTED: N_("weighted scores"), Fusion.RRF: N_("reciprocal ranks")},
    "normalisation": {
        Normalisation.CALIBRATED: N_("by what unrelated text scores"),
        Normalisation.MINMAX: N_("by the least and the greatest candidate"),
        Normalisation.RAW: N_("as they are"),
    },
}


@dataclass(frozen=True, slots=True)
class FormField:
    """A key as the form shows it. `value` is what stands in the field, right or wrong."""

    name: str
    label: str
    explanation: str
    value: str
    default: str
    low: Any = None
    high: Any = None
    is_whole: bool = False
    choices: tuple[tuple[str, str], ...] = ()
    error: str | None = None

    @property
    def takes(self) -> str:
        """What the field takes, in words; empty for a choice."""
        if self.low is None or self.high is None:
            return ""
        low, high = format_decimal(self.low), format_decimal(self.high)
        if self.is_whole:
            return str(gettext("a whole number from %(low)s to %(high)s", low=low, high=high))
        return str(gettext("a number from %(low)s to %(high)s", low=low, high=high))


@blueprint.get("")
@context.for_administrators
def show() -> Answer:
    config = dynamic_config.show(context.services(), context.person())
    return _page({name: _plain(getattr(config, name)) for name in DynamicConfig.model_fields})


@blueprint.post("")
@context.for_administrators
def save() -> Answer:
    services, person = context.services(), context.person()
    current = dynamic_config.show(services, person)
    if request.form.get("action") == "defaults":
        dynamic_config.change(services, person, DynamicConfig().model_dump(mode="json"))
        remember(gettext("The search settings are back at their defaults."), kind="success")
        return redirect(url_for("admin_search.show"), code=303)
    given = {
        name: request.form[name].strip()
        for name in DynamicConfig.model_fields
        if name in request.form
    }
    if faults := _faults(given):
        return _page(given, faults), InvalidInput.status
    changed = {
        name: value for name, value in given.items() if value != _plain(getattr(current, name))
    }
    try:
        dynamic_config.change(services, person, changed)
    except InvalidInput as error:
        return _page(given, message=error_message(error)), error.status
    remember(gettext("The search settings are saved and count from now on."), kind="success")
    return redirect(url_for("admin_search.show"), code=303)


def _faults(given: dict[str, str]) -> dict[str, str]:
    """What is wrong with each field that does not fit, in the reader's language."""
    try:
        config = DynamicConfig.model_validate(given)
    except ValidationError as error:
        names = {str(item["loc"][0]) for item in error.errors()}
        return {name: _fault(_field(name, given[name])) for name in names}
    if config.semantic_weight + config.bm25_weight <= 0:
        return dict.fromkeys(WEIGHTS, gettext("One of the two weights must be above 0."))
    return {}


def _fault(field: FormField) -> str:
    if field.choices:
        return str(gettext("Choose one of the list."))
    return str(
        gettext(
            "“%(value)s” does not fit. It takes %(takes)s.", value=field.value, takes=field.takes
        )
    )


def _page(
    values: dict[str, str], faults: dict[str, str] | None = None, *, message: str | None = None
) -> str:
    fields = [_field(name, values.get(name), (faults or {}).get(name)) for name in _names()]
    return render_template("pages/admin_search.html", fields=fields, message=message)


def _names() -> list[str]:
    """All keys; those that have no words here yet come last, under their own names."""
    known = [name for name in WORDS if name in DynamicConfig.model_fields]
    return known + [name for name in DynamicConfig.model_fields if name not in WORDS]


def _field(name: str, value: str | None, error: str | None = None) -> FormField:
    info = DynamicConfig.model_fields[name]
    label, explanation = WORDS.get(name, (name, ""))
    default = _plain(info.default)
    choices = {key.value: str(gettext(words)) for key, words in CHOICES.get(name, {}).items()}
    return FormField(
        name=name,
        label=gettext(label),
        explanation=gettext(explanation) if explanation else "",
        value=default if value is None else value,
        default=choices.get(default, default),
        low=next((rule.ge for rule in info.metadata if isinstance(rule, Ge)), None),
        high=next((rule.le for rule in info.metadata if isinstance(rule, Le)), None),
        is_whole=info.annotation is int,
        choices=tuple(choices.items()),
        error=error,
    )


def _plain(value: Any) -> str:
    """A value as it stands in its field."""
    return str(value.value if isinstance(value, StrEnum) else value)
