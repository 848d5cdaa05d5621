"""Requests to the search of chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask.testing import FlaskClient

TEXTS = (
    "Annual leave is fifteen days for all staff.",
    "Copper pipes carry water through the old house.",
    "Unused annual leave expires at the end of March.",
    "年假为每年十五天，未休年假于三月底作废。",
    "The violin stands in the corner of the house.",
    "Glaciers carry stones through old valleys.",
)
Ask = Callable[..., Any]


def contents(data: Any) -> list[str]:
    return [result["chunk"]["content"] for result in data["results"]]


def similar(client: FlaskClient, headers: dict[str, str], chunk_id: object, query: str = "") -> Any:
    return client.get(f"/api/v1/search/similar/{chunk_id}{query}", headers=headers)
