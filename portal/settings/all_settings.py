"""All settings, and how they are loaded."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    YamlConfigSettingsSource,
)

from portal.errors import InvalidSetting
from portal.settings.base import Listed, http_address
from portal.settings.fields import environment_name, iterate_fields
from portal.settings.models import ChatSettings, EmbeddingSettings, RerankSettings
from portal.settings.oidc import OidcSettings
from portal.settings.search import SearchSettings
from portal.settings.sign_in import JwtSettings, PasswordSettings, SignInSettings
from portal.settings.smaller_sections import (
    AuditSettings,
    BackupSettings,
    ChromaSettings,
    IngestSettings,
    McpSettings,
    MetricsSettings,
    SourceSettings,
    TracingSettings,
    UploadSettings,
)
from portal.settings.web import RateLimitSettings, WebSettings

# For sign-ins, which wait separately, and for static files and /health, which never wait.
_SPARE_THREADS = 28
MIN_SECRET_KEY_BYTES = 32  # As long as the digests that it signs with (RFC 7518, 3.2).
HOW_TO_MAKE_A_KEY = "Make one with: python3 -c 'import secrets; print(secrets.token_urlsafe(48))'"
_HOST_NAME = re.compile(r"\.?[a-z0-9-]+(\.[a-z0-9-]+)*|[0-9a-f:]*:[0-9a-f:.]*")
# Settings whose values are not repeated in an error. There may be a private key among recipients by
# mistake.
_SECRETS = ("KEY", "KEY_OLD", "PASSWORD", "URL", "TOKEN", "SECRET", "RECIPIENTS")
_NOUNS = ("whole number", "number", "path")


class Settings(BaseSettings):
    """The portal's settings, read once at start."""

    model_config = SettingsConfigDict(
        env_prefix="PORTAL_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        populate_by_name=True,
    )

    database_url: Annotated[
        str | None, Field(validation_alias=AliasChoices("DATABASE_URL", "database_url"))
    ] = Field(
        None,
        description="address of your PostgreSQL server; unset: an embedded one in the data "
        "directory",
    )
    database_replica_url: Annotated[
        str | None,
        Field(validation_alias=AliasChoices("DATABASE_REPLICA_URL", "database_replica_url")),
    ] = Field(
        None,
        description="addresses of replicas of DATABASE_URL to read from, separated by commas; you "
        "may name all servers of a cluster",
    )
    database_replica_wait_s: float = Field(
        0.1,
        ge=0,
        le=5,
        description="how long a request that only reads waits for a replica to catch up before it "
        "reads from the primary",
    )
    database_outage_reads_s: float = Field(
        3600.0,
        ge=0,
        le=604800,
        description="how long requests read from replicas while the primary is lost; then 503. 0: "
        "not at all",
    )
    redis_url: Annotated[
        str | None, Field(validation_alias=AliasChoices("REDIS_URL", "redis_url"))
    ] = Field(None, description="shared limits and caches; unset: in memory")
    use_hybrid_search: Annotated[
        str | None, Field(validation_alias=AliasChoices("USE_HYBRID_SEARCH", "use_hybrid_search"))
    ] = Field(None, description="`true`, `1` or `yes` makes `semantic_search` hybrid")
    data_dir: Path = Field(Path("var"), description="directory of the database, keys and logs")
    admin_password: SecretStr | None = Field(
        None, description="password of the first administrator; unset: a random one, printed once"
    )
    secret_key: SecretStr | None = Field(
        None,
        description="key that signs tokens, 32 bytes or more; unset: generated once and kept in "
        "the data directory with mode 600",
    )
    secret_key_old: SecretStr | None = Field(
        None, description="previous key; what it signed stays valid until you remove this setting"
    )
    registration: Literal["invite", "open", "closed"] = Field(
        "invite",
        description="who may create an account: `invite`: people with an invitation; `open`: "
        "everyone, on the sign-in page; `closed`: no one, and open invitations stop working",
    )
    max_upload_mb: int = Field(50, ge=1, le=10240, description="maximum size of a file")
    trash_days: int = Field(
        30,
        ge=0,
        le=36500,
        description="days that a document stays in the trash before it is purged; 0: never purged",
    )
    conversation_days: int = Field(
        0,
        ge=0,
        le=36500,
        description="a conversation is erased this many days after its last message, unless it is "
        "pinned; 0: never",
    )
    quota_mb: int = Field(
        10_240,
        ge=0,
        le=100_000_000,
        description="MB of original files that a user may keep, including the trash and earlier "
        "versions; 0: no limit",
    )
    disk_reserve_mb: int = Field(
        64,
        ge=0,
        le=1_000_000,
        description="MB that uploads leave free on the data directory's disk; uploads that would "
        "leave less get 507. Only with the embedded database",
    )
    vector_store_enabled: Annotated[
        bool,
        Field(
            validation_alias=AliasChoices(
                "PORTAL_VECTOR_STORE_ENABLED", "VECTOR_STORE_ENABLED", "vector_store_enabled"
            )
        ),
    ] = Field(
        True,
        description="false: requests that need vectors get 503; keyword search and chat still "
        "work. `VECTOR_STORE_ENABLED` is accepted, too",
    )
    public_url: str = Field(
        "http://127.0.0.1:8000",
        description="the portal's address, for links in invitations and for AI clients; unset: "
        "invitations use the address of the administrator's request",
    )
    trusted_hosts: Listed[str] = Field(
        (),
        description="further host names of the portal, separated by commas; `.example.org` stands "
        "for all of its subdomains. The host of PORTAL_PUBLIC_URL, localhost and the addresses "
        "that the portal listens on are always accepted",
    )
    trusted_proxies: int = Field(
        0,
        ge=0,
        le=10,
        description="number of proxies in front of the portal whose X-Forwarded-* headers are "
        "trusted",
    )
    notification_days: int = Field(
        30, ge=1, le=3650, description="days that notifications are kept"
    )
    metrics_public: bool = Field(False, description="true: everyone may read /metrics")
    log_format: Literal["json", "console"] = Field("console", description="format of log lines")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="minimum level of log lines"
    )
    database_pooler: Literal["none", "transaction"] = Field(
        "none",
        description="set `transaction` behind a pooler that gives each transaction another "
        "connection, such as PgBouncer in transaction mode; statements are then not prepared",
    )
    database_pool_size: int = Field(
        10, ge=1, le=200, description="database connections of a process"
    )
    database_pool_timeout_s: float = Field(
        1.0, gt=0, le=60, description="how long a request waits for a database connection; then 503"
    )
    database_statement_timeout_s: float = Field(
        60.0,
        gt=0,
        le=3600,
        description="time limit for each SQL statement of a request; then 503 (searches have their "
        "own limit)",
    )
    web: WebSettings = WebSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    rerank: RerankSettings = RerankSettings()
    chat: ChatSettings = ChatSettings()
    search: SearchSettings = SearchSettings()
    jwt: JwtSettings = JwtSettings()
    passwords: PasswordSettings = PasswordSettings()
    sign_in: SignInSettings = SignInSettings()
    oidc: OidcSettings = OidcSettings()
    rate_limits: RateLimitSettings = RateLimitSettings()
    ingest: IngestSettings = IngestSettings()
    uploads: UploadSettings = UploadSettings()
    sources: SourceSettings = SourceSettings()
    mcp: McpSettings = McpSettings()
    chroma: ChromaSettings = ChromaSettings()
    audit: AuditSettings = AuditSettings()
    backup: BackupSettings = BackupSettings()
    metrics: MetricsSettings = MetricsSettings()
    tracing: TracingSettings = TracingSettings()

    @field_validator("secret_key", "secret_key_old")
    @classmethod
    def _is_long_enough(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(value.get_secret_value().encode()) < MIN_SECRET_KEY_BYTES:
            raise ValueError(f"{MIN_SECRET_KEY_BYTES} bytes or more. {HOW_TO_MAKE_A_KEY}")
        return value

    @field_validator("trusted_hosts")
    @classmethod
    def _are_host_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        names = tuple(name.lower() for name in value)
        if not all(map(_HOST_NAME.fullmatch, names)):
            raise ValueError("host names such as portal.example.org, without scheme and port")
        return names

    @field_validator("public_url")
    @classmethod
    def _begins_addresses(cls, value: str) -> str:
        parts = urlsplit(http_address(value))
        if parts.query or parts.fragment:
            raise ValueError("an address without ? and #")
        return value.rstrip("/")

    @property
    def has_public_url(self) -> bool:
        """Return whether PORTAL_PUBLIC_URL is set."""
        return "public_url" in self.model_fields_set

    @property
    def web_process_threads(self) -> int:
        """Return the number of threads of a web process: one for each request that runs or waits
        and for each answer, and some that refuse the rest and serve /health."""
        web = self.web
        answers = self.chat.concurrent_answers
        return web.requests_at_once + web.requests_waiting + answers + _SPARE_THREADS

    def with_requests_at_once(self, count: int | None) -> Settings:
        """Return these settings with another `requests_at_once`; unchanged for None."""
        if count is None:
            return self
        return self.model_copy(
            update={"web": self.web.model_copy(update={"requests_at_once": count})}
        )

    @property
    def replica_urls(self) -> list[str]:
        """Return the addresses of DATABASE_REPLICA_URL. A comma only separates two if an address
        begins after it, because one may have several hosts."""
        parts = re.split(
            r"[,\s]+(?=postgres(?:ql)?(?:\+psycopg)?://)", self.database_replica_url or ""
        )
        return [part.strip(", ") for part in parts if part.strip(", ")]

    @property
    def max_upload_bytes(self) -> int:
        return self.max_upload_mb * 1024 * 1024

    @property
    def quota_bytes(self) -> int:
        """Return the quota in bytes; 0 for no limit."""
        return self.quota_mb * 1024 * 1024

    @property
    def temporary_dir(self) -> Path:
        """Return the directory for uploads in progress; not /tmp, which is often in memory."""
        return self.data_dir / "tmp"

    @property
    def hybrid_semantic_search(self) -> bool:
        """Return whether `semantic_search` is hybrid; anything unclear means no."""
        return (self.use_hybrid_search or "").strip().lower() in {"true", "1", "yes"}

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is fixed
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read arguments first, then the environment, then the YAML file."""
        path = Path(os.environ.get("PORTAL_CONFIG", "portal.yaml"))
        return (init_settings, env_settings, YamlConfigSettingsSource(settings_cls, path))


def load_settings(**overrides: Any) -> Settings:
    """Read the settings. Raises InvalidSetting with the first wrong value's name."""
    try:
        return Settings(**overrides)
    except ValidationError as error:
        first = error.errors()[0]
        path = tuple(str(part) for part in first["loc"])
        name = path[0] if path[0].isupper() else environment_name(path)
        secret = name.endswith(_SECRETS) or "@" in str(first.get("input"))
        got = "a value that is not shown" if secret else repr(first.get("input"))
        raise InvalidSetting(name=name, got=got, takes=_takes(name, first)) from None


def _takes(name: str, error: Any) -> str:
    if error["type"] == "extra_forbidden":
        return "no value: there is no such setting (docs/settings.md lists them)"
    if error["type"] not in {"value_error", "literal_error"}:
        for setting in iterate_fields(Settings):
            if name == setting.name:
                return f"a {setting.takes}" if setting.takes.startswith(_NOUNS) else setting.takes
    return str(error["msg"]).replace("Input should be ", "").replace("Value error, ", "")
