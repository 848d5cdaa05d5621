"""Errors and their messages, by capability.

A message says what happened, why, and what to do. It is an English template with ``%(name)s``
placeholders. Each surface (page, JSON, command line) translates it and fills the placeholders, so
that the same error reads well in the reader's language.
"""

from __future__ import annotations

from portal.errors.base import *
from portal.errors.documents import *
from portal.errors.files import *
from portal.errors.messages import *
from portal.errors.operations import *
from portal.errors.people import *
from portal.errors.requests import *
from portal.errors.search import *

# If errors share a code, the first wins: it is about a file, and failed requests are not stored.
MESSAGES = {error.code: error.message for error in reversed(list(tree(PortalError)))}
"""The template of each code, for stored failures."""

PERMANENT = frozenset(error.code for error in tree(PortalError) if error.is_permanent)
"""The codes of failures that a retry cannot fix."""
