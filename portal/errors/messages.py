"""Messages: English templates and their parameters, which each surface translates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self


class Message(str):
    """English text that keeps its template and parameters, so that each surface can translate it.

    Logs, the command line and programs use it as a plain `str`.
    """

    __slots__ = ("params", "template")

    template: str
    params: Mapping[str, Any]

    def __new__(cls, template: str, /, **params: Any) -> Self:
        message = super().__new__(cls, template % params if params else template)
        message.template, message.params = template, params
        return message

    def as_json(self) -> dict[str, Any]:
        """Return the JSON that `stored` reads."""
        return {"template": self.template, "params": params_as_json(self.params)}

    @classmethod
    def stored(cls, value: Any) -> Any:
        """Return the message that `as_json` wrote; any other value as it is."""
        if isinstance(value, Mapping) and value.keys() == {"template", "params"}:
            return cls(value["template"], **stored_params(value["params"]))
        return value


def params_as_json(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return `params` as JSON, with the template and parameters of each message in it."""
    return {name: _as_json(value) for name, value in params.items()}


def _as_json(value: Any) -> Any:
    if isinstance(value, Message):
        return value.as_json()
    return value if isinstance(value, str | int | float | None) else str(value)


def stored_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that `params_as_json` wrote."""
    return {name: Message.stored(value) for name, value in params.items()}


def verbatim(text: str) -> Message:
    """Return a message that is the same in every language: field names, or text from another
    program."""
    return Message("%(text)s", text=text)


N_ = Message  # gettext's name for "translate later"
