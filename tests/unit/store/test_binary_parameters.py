"""Arrays of UUIDs in the server's binary form."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from psycopg.adapt import Transformer
from psycopg.pq import Format

from portal.store.binary_parameters import UuidsParameter

UUIDS_OID = 2951


@pytest.mark.parametrize("count", [0, 1, 3])
def test_array_in_text_becomes_the_same_array_in_binary(count: int) -> None:
    ids = [uuid4() for _ in range(count)]
    array = UuidsParameter("{" + ",".join(map(str, ids)) + "}")
    loaded: list[UUID] = Transformer().get_loader(UUIDS_OID, Format.BINARY).load(array.wire)
    assert loaded == ids
    assert UuidsParameter(ids).wire == array.wire
