"""Everything that can be set, with its default and its range.

They come from `portal.yaml` (or the file in PORTAL_CONFIG), overridden by the environment: prefix
``PORTAL_``, two underscores between levels. `python -m portal.settings` prints docs/settings.md.
"""

from __future__ import annotations

from portal.settings.base import Section
from portal.settings.models import (
    DEFAULT_MODELS,
    DEFAULT_RERANKER,
    ChatSettings,
    EmbeddingSettings,
    RerankSettings,
)
from portal.settings.oidc import OidcSettings
from portal.settings.others import (
    AuditSettings,
    BackupSettings,
    ChromaSettings,
    IngestSettings,
    McpSettings,
    MetricsSettings,
    SourceSettings,
    UploadSettings,
)
from portal.settings.page import settings_page
from portal.settings.search import (
    DocumentWeights,
    HnswSettings,
    IvfflatSettings,
    PlanSettings,
    SearchSettings,
)
from portal.settings.sign_in import JwtSettings, OutsideIssuerSettings, SignInSettings
from portal.settings.web import RateLimitSettings, WebSettings
from portal.settings.whole import Settings, load_settings

__all__ = [
    "DEFAULT_MODELS",
    "DEFAULT_RERANKER",
    "AuditSettings",
    "BackupSettings",
    "ChatSettings",
    "ChromaSettings",
    "DocumentWeights",
    "EmbeddingSettings",
    "HnswSettings",
    "IngestSettings",
    "IvfflatSettings",
    "JwtSettings",
    "McpSettings",
    "MetricsSettings",
    "OidcSettings",
    "OutsideIssuerSettings",
    "PlanSettings",
    "RateLimitSettings",
    "RerankSettings",
    "SearchSettings",
    "Section",
    "Settings",
    "SignInSettings",
    "SourceSettings",
    "UploadSettings",
    "WebSettings",
    "load_settings",
    "settings_page",
]
