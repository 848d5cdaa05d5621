"""Documents that show a new user what the portal does.

The texts in this folder were written for it and are in the public domain (CC0 1.0). Users load them
as their own private documents and remove them permanently, with one click each.
"""

from __future__ import annotations

import hashlib
from functools import cache
from io import BytesIO
from pathlib import Path
from uuid import UUID

from portal.domain.documents import Visibility
from portal.domain.people import User
from portal.services import Services
from portal.services.documents import library
from portal.services.documents.intake import uploads
from portal.services.documents.intake.uploads import Upload
from portal.store.documents import rows as document_store

_FOLDER = Path(__file__).parent


@cache
def files() -> dict[str, bytes]:
    """Return the files by name."""
    return {
        path.name: path.read_bytes()
        for path in sorted(_FOLDER.iterdir())
        if path.is_file() and path.suffix != ".py"
    }


def load(services: Services, user: User) -> None:
    """Upload the examples as the user's private documents. Existing ones stay as they are; those in
    the trash are restored. Raises what `uploads.store_uploads` raises."""
    for document_id, is_deleted in _find(services, user):
        if is_deleted:
            library.restore_document(services, user, document_id)
    sent = [Upload(BytesIO(content), name) for name, content in files().items()]
    uploads.store_uploads(services, user, sent, visibility=Visibility.PRIVATE)


def remove(services: Services, user: User) -> int:
    """Purge the user's examples, also from the trash; return how many there were. A document with
    another version is the user's own by now, and stays."""
    found = _find(services, user)
    for document_id, _ in found:
        library.purge_document(services, user, document_id)
    return len(found)


def is_loaded(services: Services, user: User) -> bool:
    return any(not is_deleted for _, is_deleted in _find(services, user))


def _find(services: Services, user: User) -> list[tuple[UUID, bool]]:
    """Return the user's examples, and whether each is in the trash."""
    hashes = [hashlib.sha256(content).hexdigest() for content in files().values()]
    with services.database.begin() as session:
        return document_store.find_own(session, user.id, hashes)
