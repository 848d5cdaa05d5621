"""Search settings that administrators change at run time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from annotated_types import Ge, Le
from flask import render_template, request, url_for
from flask_babel import format_decimal, gettext
from pydantic import ValidationError

from portal.domain.search import Normalisation
from portal.errors import N_, InvalidInput
from portal.http import context
from portal.http.messages import error_message
from portal.services.search import dynamic_config
from portal.services.search.dynamic_config import DynamicConfig
from portal.web.blueprint import PageBlueprint
from portal.web.layout import Answer, see_other
from portal.web.search import explanations

blueprint = PageBlueprint("admin_search", __name__, "/admin/search", context.for_administrators)

# The label and description of each key, in page order.
WORDS = {
    "semantic_weight": (
        N_("Semantic weight"),
        N_("How much semantic similarity counts. Only the ratio of the two weights matters."),
    ),
    "bm25_weight": (
        N_("Keyword weight"),
        N_("How much keyword matches count. At least one weight must be greater than 0."),
    ),
    "fusion": (
        N_("Fusion"),
        N_("How the two result lists are merged: by weighted scores, or by rank."),
    ),
    "normalisation": (
        N_("Normalisation"),
        N_("How scores are normalised before weighting."),
    ),
    "rrf_k": (
        N_("RRF constant k"),
        N_(
            "Larger values reduce the advantage of top ranks. Used only with reciprocal "
            "rank fusion."
        ),
    ),
    "top_n": (
        N_("Results per search"),
        N_("Default number of results when a request does not specify one."),
    ),
    "confidence_threshold": (
        N_("Low-confidence threshold"),
        N_("Results below it are marked as low confidence."),
    ),
    "domain_boost": (
        N_("Preferred domain boost"),
        N_("Added to the score of passages in the user's preferred domain."),
    ),
    "context_token_budget": (
        N_("Context tokens per answer"),
        N_("Maximum number of tokens of source text used for an answer."),
    ),
}
WEIGHTS = ("semantic_weight", "bm25_weight")
CHOICES: dict[str, dict[StrEnum, str]] = {
    "fusion": explanations.FUSION_WORDS,
    "normalisation": {one: explanations.VALUES[one] for one in Normalisation},
}


@dataclass(frozen=True, slots=True)
class FormField:
    """A setting in the form. `value` is the text in the field, valid or not."""

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
        """Return the accepted values in words; empty for a choice."""
        if self.low is None or self.high is None:
            return ""
        low, high = format_decimal(self.low), format_decimal(self.high)
        if self.is_whole:
            return str(gettext("a whole number from %(low)s to %(high)s", low=low, high=high))
        return str(gettext("a number from %(low)s to %(high)s", low=low, high=high))


@blueprint.get("")
def show() -> Answer:
    config = dynamic_config.show(*context.caller())
    return _page({name: _plain(getattr(config, name)) for name in DynamicConfig.model_fields})


@blueprint.post("")
def save() -> Answer:
    services, user = context.caller()
    current = dynamic_config.show(services, user)
    if request.form.get("action") == "defaults":
        dynamic_config.change(services, user, _defaults().model_dump(mode="json"))
        return see_other(
            url_for("admin_search.show"), gettext("Search settings restored to defaults.")
        )
    submitted = {
        name: request.form[name].strip()
        for name in DynamicConfig.model_fields
        if name in request.form
    }
    if faults := _faults(submitted):
        return _page(submitted, faults), InvalidInput.status
    changed = {
        name: value for name, value in submitted.items() if value != _plain(getattr(current, name))
    }
    try:
        dynamic_config.change(services, user, changed)
    except InvalidInput as error:
        return _page(submitted, message=error_message(error)), error.status
    return see_other(
        url_for("admin_search.show"), gettext("Search settings saved. They apply from now on.")
    )


def _faults(submitted: dict[str, str]) -> dict[str, str]:
    """Return the error of each invalid field, in the reader's language."""
    try:
        config = DynamicConfig.model_validate(submitted)
    except ValidationError as error:
        names = {str(item["loc"][0]) for item in error.errors()}
        return {name: _fault(_field(name, submitted[name])) for name in names}
    if config.semantic_weight + config.bm25_weight <= 0:
        return dict.fromkeys(
            WEIGHTS, gettext("At least one of the two weights must be greater than 0.")
        )
    return {}


def _fault(field: FormField) -> str:
    if field.choices:
        return str(gettext("Choose an option from the list."))
    return str(
        gettext("“%(value)s” is not valid. Enter %(takes)s.", value=field.value, takes=field.takes)
    )


def _page(
    values: dict[str, str], faults: dict[str, str] | None = None, *, message: str | None = None
) -> str:
    fields = [_field(name, values.get(name), (faults or {}).get(name)) for name in _names()]
    return render_template("pages/operations/admin_search.html", fields=fields, message=message)


def _names() -> list[str]:
    """Return all keys; those without a label come last, under their own names."""
    known = [name for name in WORDS if name in DynamicConfig.model_fields]
    return known + [name for name in DynamicConfig.model_fields if name not in WORDS]


def _field(name: str, value: str | None, error: str | None = None) -> FormField:
    info = DynamicConfig.model_fields[name]
    label, explanation = WORDS.get(name, (name, ""))
    default = _plain(getattr(_defaults(), name))
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


def _defaults() -> DynamicConfig:
    return dynamic_config.defaults(context.services().settings.search)


def _plain(value: Any) -> str:
    """Return a value as text for its field."""
    return str(value.value if isinstance(value, StrEnum) else value)
