"""A blueprint whose views declare their endpoints by signature and docstring."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import cleandoc
from typing import Any, cast, get_args, get_type_hints

from apiflask import APIBlueprint
from flask import Response, request
from pydantic import BaseModel

from portal.api.schemas import ERROR_WORDS
from portal.http.marks import Mark, View


class ApiBlueprint(APIBlueprint):
    """A family of JSON endpoints.

    The arguments `json_data` and `query_data` of a view are validated by their annotated models. A
    returned model is the response, None is 204. The first paragraph of a view's docstring is the
    summary at /openapi, the rest is the description.
    """

    def route(
        self,
        rule: str,
        *,
        status_code: int = 200,
        errors: tuple[int, ...] = (),
        responses: dict[str, Any] | None = None,
        description: str | None = None,
        body_is_optional: bool = False,
        **options: Any,
    ) -> Callable[[View], View]:
        """Add an endpoint.

        `errors` are statuses that do not follow from the route; `portal.api.openapi` adds those
        that do, such as 401 and 422. `responses` describe other responses. `description` is added
        to that of the docstring. With `body_is_optional` a missing body counts as an empty one.
        """

        def decorate(view: View) -> View:
            summary, _, explained = cleandoc(view.__doc__ or "").partition("\n\n")
            words = " ".join([*explained.split(), *([description] if description else [])])
            described: Any = {str(code): {"description": ERROR_WORDS[code]} for code in errors}
            endpoint: Callable[..., Any] = self.doc(
                summary=summary.removesuffix("."),
                description=words or None,
                responses=(responses or {}) | described,
            )(view)
            hints = get_type_hints(view)
            returned = hints.pop("return")
            for name in ("json_data", "query_data") & hints.keys():
                endpoint = self.input(hints[name], location=name.removesuffix("_data"))(endpoint)
            if body_is_optional:
                endpoint = _without_body(endpoint, view, hints["json_data"])
            endpoint = _to_json(endpoint, status_code)
            for model in get_args(returned) or [returned]:
                if model is type(None):
                    endpoint = self.output({}, status_code=204)(endpoint)
                elif issubclass(model, BaseModel):
                    endpoint = self.output(model, status_code=status_code)(endpoint)
            super(ApiBlueprint, self).route(rule, **options)(endpoint)
            return cast("View", endpoint)

        return decorate


def _without_body(
    endpoint: Callable[..., Any], view: Callable[..., Any], model: type[BaseModel]
) -> Callable[..., Any]:
    @wraps(endpoint)
    def take(**arguments: Any) -> Any:
        if request.get_data():
            return endpoint(**arguments)
        return view(**arguments, json_data=model())

    return Mark(body_is_optional=True)(take)


def _to_json(endpoint: Callable[..., Any], status_code: int) -> Callable[..., Any]:
    """Serialise the model that an endpoint returns. APIFlask would first convert it to
    dictionaries, and then those to JSON."""

    @wraps(endpoint)
    def respond(**arguments: Any) -> Any:
        answer = endpoint(**arguments)
        if not isinstance(answer, BaseModel):
            return answer
        text = answer.model_dump_json(by_alias=True)
        return Response(f"{text}\n", status_code, mimetype="application/json")

    return respond
