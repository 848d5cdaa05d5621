"""Everything that can be set, with its default and its range.

Values come from `portal.yaml` (or the file in PORTAL_CONFIG), overridden by the environment: prefix
``PORTAL_``, two underscores between levels. `python -m portal.settings` prints docs/settings.md.
"""

from __future__ import annotations

from portal.settings.all_settings import Settings, load_settings
from portal.settings.models import (
    DEFAULT_MODELS,
    DEFAULT_RERANKER,
    ChatSettings,
    EmbeddingSettings,
    RerankSettings,
)
from portal.settings.oidc import OidcSettings
from portal.settings.search import HnswSettings, SearchSettings
from portal.settings.sign_in import OutsideIssuerSettings
from portal.settings.web import RateLimitSettings, WebSettings

__all__ = [
    "DEFAULT_MODELS",
    "DEFAULT_RERANKER",
    "ChatSettings",
    "EmbeddingSettings",
    "HnswSettings",
    "OidcSettings",
    "OutsideIssuerSettings",
    "RateLimitSettings",
    "RerankSettings",
    "SearchSettings",
    "Settings",
    "WebSettings",
    "load_settings",
]
