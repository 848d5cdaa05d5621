"""Addresses of database servers, as operators write them."""

from __future__ import annotations

import pytest
from psycopg.conninfo import conninfo_to_dict

from portal.store.session import Database, normalise_url


@pytest.mark.parametrize(
    ("url", "hosts", "ports"),
    [
        ("postgres://portal@db/portal", "db", None),
        ("postgresql://portal:p%40ss@db1,db2/portal", "db1,db2", "5432,5432"),
        ("postgresql+psycopg://portal@db1:1,db2:2/portal", "db1,db2", "1,2"),
        ("postgresql://portal@/portal?host=/run/a,/run/b&port=6432", "/run/a,/run/b", "6432,6432"),
    ],
)
def test_several_servers_in_one_address_reach_the_driver(
    url: str, hosts: str, ports: str | None
) -> None:
    separator = "&" if "?" in url else "?"
    database = Database(f"{url}{separator}target_session_attrs=read-write")
    parts = conninfo_to_dict(database.conninfo)
    assert (parts["host"], parts.get("port")) == (hosts, ports)
    assert parts["target_session_attrs"] == "read-write"
    assert normalise_url(database.url) == database.url
    _, arguments = database.engine.dialect.create_connect_args(database.engine.url)
    assert (arguments["host"], arguments.get("port")) == (hosts, ports)
