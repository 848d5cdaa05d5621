"""Use cases that are one function of the store: the function, in its own transaction."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from portal.services import Services
from portal.store.session import Session

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
StoreFunction = Callable[Concatenate[Session, Arguments], Result]
UseCase = Callable[Concatenate[Services, Arguments], Result]


def in_transaction(run: StoreFunction[Arguments, Result]) -> UseCase[Arguments, Result]:
    """Return `run` as a use case, which takes the services in place of the session."""

    @wraps(run)
    def use_case(
        services: Services, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        with services.database.begin() as session:
            return run(session, *args, **kwargs)

    return use_case


def reading(run: StoreFunction[Arguments, Result]) -> UseCase[Arguments, Result]:
    """Return `run`, a single read-only statement, as a use case that opens no transaction."""

    @wraps(run)
    def use_case(
        services: Services, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        with services.database.read() as session:
            return run(session, *args, **kwargs)

    return use_case
