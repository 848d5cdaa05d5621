"""Messages for invalid bodies and query strings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from flask_babel import gettext
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from portal.errors import N_
from portal.http.messages import translated

# How many wrong values the message names; `details` have all of them.
_MAX_NAMED = 3

_MAX_CHARACTERS = N_("must have at most %(max_length)s characters")
_MIN_CHARACTERS = N_("must have %(min_length)s or more characters")
_WHOLE_NUMBER = N_("must be a whole number")
_NUMBER = N_("must be a number")
_YES_OR_NO = N_("must be true or false")
_UUID = N_("must be a UUID")
_DATE_AND_TIME = N_("must be a date and time with a time zone, such as 2026-05-04T09:30:00Z")
_WORDS = {
    "missing": N_("is required"),
    "extra_forbidden": N_("is not a known field; remove it"),
    "string_too_long": _MAX_CHARACTERS,
    "string_too_short": _MIN_CHARACTERS,
    "too_long": N_("must have at most %(max_length)s items"),
    "too_short": N_("must have %(min_length)s or more items"),
    "greater_than": N_("must be greater than %(gt)s"),
    "greater_than_equal": N_("must be at least %(ge)s"),
    "less_than": N_("must be less than %(lt)s"),
    "less_than_equal": N_("must be at most %(le)s"),
    "finite_number": N_("must be a finite number"),
    "literal_error": N_("must be one of: %(expected)s"),
    "enum": N_("must be one of: %(expected)s"),
    "string_type": N_("must be text"),
    "bool_type": _YES_OR_NO,
    "bool_parsing": _YES_OR_NO,
    "int_type": _WHOLE_NUMBER,
    "int_parsing": _WHOLE_NUMBER,
    "int_parsing_size": _WHOLE_NUMBER,
    "int_from_float": _WHOLE_NUMBER,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "uuid_type": _UUID,
    "uuid_parsing": _UUID,
    "datetime_type": _DATE_AND_TIME,
    "datetime_parsing": _DATE_AND_TIME,
    "datetime_from_date_parsing": _DATE_AND_TIME,
    "timezone_aware": _DATE_AND_TIME,
    "list_type": N_("must be a list"),
    "dict_type": N_("must be an object"),
    "model_type": N_("must be an object"),
    # Other malformed JSON has been refused before.
    "json_invalid": N_("the JSON is nested too deeply"),
}


def words_of(error: ValidationError) -> dict[str, list[str]]:
    """Return the errors of each field in the reader's language; `_schema` is the whole body."""
    found: dict[str, list[str]] = {}
    for fault in error.errors():
        field = ".".join(map(str, fault["loc"])) or "_schema"
        found.setdefault(field, []).append(_words(fault))
    return found


def summary(words: Mapping[str, list[str]]) -> str:
    """Return the first reasons in one line."""
    named = [*_sentences(words)]
    return "; ".join(named[:_MAX_NAMED]) + ("; …" if len(named) > _MAX_NAMED else "")


def _sentences(words: Mapping[str, list[str]]) -> Iterator[str]:
    for field, reasons in words.items():
        for reason in reasons:
            yield reason if field == "_schema" else f"{field} {reason}"


def _words(error: ErrorDetails) -> str:
    context = dict(error.get("ctx", {}))
    if "expected" in context:
        context["expected"] = str(context["expected"]).replace(" or ", ", ")
    if error["type"] == "value_error":
        raised = context.get("error")
        return translated(raised.args[0] if isinstance(raised, ValueError) else error["msg"])
    kind = error["type"]
    if isinstance(error["input"], str) and kind in {"too_long", "too_short"}:
        # Pydantic reports the length of some texts as that of a list.
        kind = f"string_{kind}"
    template = _WORDS.get(kind)
    return error["msg"] if template is None else str(gettext(template)) % context
