"""Advisory locks of the database, in one list so that no two share a number."""

from __future__ import annotations

MIGRATION = 7_316_001
KEYWORD_INDEX = 7_316_002
REANALYSIS = 7_316_003
MODEL_REGISTRY = 7_316_005
MODEL_BUILD = 7_316_006
OUTSIDE_SUBJECT = 7_316_007
"""Taken with a second number, for the subject."""
LOST_JOBS = 7_316_008
FOLDERS = 7_316_009
IDEMPOTENCY = 7_316_010
"""Taken with a second number, for a user and a key."""
NOTIFICATIONS = 7_316_012
SOURCE = 7_316_011
"""Taken with a second number, for a folder."""
