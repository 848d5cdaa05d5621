"""Make the body of a request optional."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from flask import request

from portal.api.schemas import RequestModel
from portal.http.context import View


def body_may_be_missing(body: type[RequestModel]) -> Callable[[View], View]:
    """Take a request without a body as one with an empty body. Goes right above the view's `input`,
    which would refuse it."""

    def decorate(view: View) -> View:
        @wraps(view)
        def take(**arguments: Any) -> Any:
            if request.get_data():
                return view(**arguments)
            return view.__wrapped__(**arguments, json_data=body())  # type: ignore[attr-defined]

        cast("Any", take).body_is_optional = True
        return cast("View", take)

    return decorate
