"""Everything that can be set, with its default and its range.

Read from `portal.yaml` (or the file that PORTAL_CONFIG names) and, above it, the environment:
prefix ``PORTAL_``, two underscores between levels. `python -m portal.settings` prints
docs/settings.md, which is made from the fields below.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    YamlConfigSettingsSource,
)

from portal.errors import InvalidSetting

DEFAULT_MODELS = {
    "bundled": "multilingual-e5-small-q4",
    "sentence-transformers": "BAAI/bge-small-zh-v1.5",
    "openai": "text-embedding-3-small",
    "hashing": "hashing-384",
}
DEFAULT_RERANKER = "cross-encoder/mmarco-mMiniLMv2-L12-H384-v1"


def _http_address(value: str) -> str:
    try:
        parts = urlsplit(value)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("an address that begins with http:// or https://")
    if "@" in parts.netloc:
        # It is shown where the endpoint fails; a password in it would be too.
        raise ValueError("an address without a name or password; a key goes to …__API_KEY")
    return value


_MOST_SIGN_INS_A_SECOND = 2
# For sign-ins, which wait apart, and for files and /health, which never wait.
_SPARE_THREADS = 28


def _rates(limits: str) -> list[float]:
    """How many times a second each limit of a text allows on average."""
    # Loading it takes as long as the rest of a command's start, and few set a limit.
    from limits import parse_many

    try:
        found = parse_many(limits)
    except ValueError:
        found = []
    if not found or not all(limit.amount for limit in found):
        raise ValueError("limits such as “30 per minute” or “10 per minute; 100 per hour”")
    return [limit.amount / limit.get_expiry() for limit in found]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("api_base", check_fields=False)
    @classmethod
    def _is_http_address(cls, value: str | None) -> str | None:
        return value if value is None else _http_address(value)


class EmbeddingSettings(Section):
    """Which model turns text into vectors."""

    provider: Literal["bundled", "sentence-transformers", "openai", "hashing"] = Field(
        "bundled", description="where vectors come from; `hashing` is for tests"
    )
    model: str | None = Field(None, description="the provider's model; unset: the provider's own")
    dimensions: int | None = Field(
        None, ge=8, le=16000, description="length of a vector; unset: what the model gives"
    )
    api_base: str | None = Field(None, description="address of an OpenAI-compatible endpoint")
    api_key: SecretStr | None = Field(None, description="its key")
    query_prefix: str | None = Field(
        None, description="what goes before a question; unset: what the model was trained with"
    )
    timeout_s: float = Field(2.0, gt=0, le=60, description="patience for a question's vector")
    threads: int = Field(0, ge=0, le=64, description="threads of a local model; 0: by the cores")
    batch_size: int = Field(
        50, ge=1, le=1000, description="passages embedded and stored at once, all or none"
    )

    @property
    def model_name(self) -> str:
        return self.model or DEFAULT_MODELS[self.provider]


class RerankSettings(Section):
    """Whether a second model looks again at the best of what was found."""

    provider: Literal["off", "sentence-transformers"] = Field(
        "off", description="what re-ranks; needs the extra `local`"
    )
    model: str | None = Field(
        None, description="name or directory of a cross-encoder; unset: the provider's own"
    )
    candidates: int = Field(20, ge=2, le=100, description="passages that are looked at again")
    timeout_s: float = Field(
        1.0, gt=0, le=60, description="patience; after it results stay in the order of fusion"
    )


class ChatSettings(Section):
    """Who writes answers."""

    provider: Literal["extractive", "openai"] = Field(
        "extractive", description="`extractive` quotes; `openai` is any compatible endpoint"
    )
    model: str | None = Field(None, description="the endpoint's model")
    api_base: str | None = Field(None, description="address of an OpenAI-compatible endpoint")
    api_key: SecretStr | None = Field(None, description="its key")
    timeout_s: float = Field(30.0, gt=0, le=600, description="patience for an answer")
    first_token_timeout_s: float = Field(
        2.0, gt=0, le=600, description="patience for its first word; after it the hits are shown"
    )
    max_tokens: int = Field(1024, ge=16, le=100_000, description="length of an answer")
    concurrent_answers: int = Field(
        10, ge=1, le=1000, description="answers that one process writes at the same time"
    )
    concurrent_answers_each: int | None = Field(
        None, ge=1, le=1000, description="of these for one person; unset: half, so all for nobody"
    )

    @property
    def answers_a_person(self) -> int:
        """How many answers to one person a process writes at the same time, 1 or more."""
        return self.concurrent_answers_each or max(1, self.concurrent_answers // 2)


class HnswSettings(Section):
    """The graph that finds near vectors."""

    m: int = Field(16, ge=2, le=100, description="links a node")
    ef_construction: int = Field(64, ge=4, le=1000, description="candidates while building")
    ef_search: int = Field(80, ge=1, le=1000, description="candidates while searching")
    max_scan_tuples: int = Field(
        20_000, ge=1, le=2_000_000_000, description="most vectors visited when many are filtered"
    )


class IvfflatSettings(Section):
    """The lists that find near vectors, for where a graph takes too long to build."""

    lists: int = Field(0, ge=0, le=32768, description="lists; 0: one for each thousand passages")
    probes: int = Field(20, ge=1, le=32768, description="lists visited while searching")


class PlanSettings(Section):
    """When a search compares every passage that is switched on, instead of asking the index and
    passing over what it finds switched off."""

    exact_always_chunks: int = Field(
        2_000, ge=0, description="so few passages are always compared one by one"
    )
    exact_chunks: int = Field(
        20_000, ge=0, description="most passages compared one by one, where few are on"
    )
    exact_share: float = Field(
        0.2, ge=0, le=1, description="share of all passages below which few are on"
    )


class DocumentWeights(Section):
    """How much words and meaning count under /v1, where a request does not say."""

    text: float = Field(0.35, ge=0, le=1000, allow_inf_nan=False, description="of `text_score`")
    vector: float = Field(0.65, ge=0, le=1000, allow_inf_nan=False, description="of `vec_score`")

    @model_validator(mode="after")
    def _is_some(self) -> DocumentWeights:
        if self.text + self.vector <= 0:
            raise ValueError("two weights of which one is more than 0")
        return self


class SearchSettings(Section):
    """How search works; the weights and the fusion of all but /v1 are in the table
    `dynamic_config` instead."""

    keyword_backend: Literal["auto", "pg_textsearch", "tsvector", "off"] = Field(
        "auto", description="what ranks words"
    )
    bm25_k1: float = Field(1.2, ge=0, le=10, description="how soon repeated words stop counting")
    bm25_b: float = Field(0.75, ge=0, le=1, description="how much long passages are held back")
    index: Literal["hnsw", "ivfflat"] = Field("hnsw", description="what finds near vectors")
    vector_type: Literal["halfvec", "vector", "bit"] = Field(
        "halfvec",
        description="what the index keeps of a vector: half or full precision, or signs alone. "
        "Over 2000 dimensions `vector` becomes `halfvec`, over 4000 both become `bit`",
    )
    hnsw: HnswSettings = HnswSettings()
    ivfflat: IvfflatSettings = IvfflatSettings()
    plan: PlanSettings = PlanSettings()
    weights: DocumentWeights = DocumentWeights()
    statement_timeout_s: float = Field(10.0, gt=0, le=600, description="patience for one search")
    cache_ttl_s: int = Field(
        300, ge=0, le=86400, description="how long results are kept; 0: never. They are never stale"
    )
    cache_mb: int = Field(32, ge=1, le=4096, description="memory of a process for kept results")


_OUTSIDE_ALGORITHMS = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]


class OutsideIssuerSettings(Section):
    """Whose tokens count beside our own, such as those of a company's sign-in service."""

    issuer: str | None = Field(
        None, min_length=1, max_length=500, description="its `iss`; unset: only our tokens count"
    )
    audience: str | None = Field(
        None, min_length=1, validate_default=True, description="`aud` of its tokens for this portal"
    )
    algorithm: _OUTSIDE_ALGORITHMS = Field(
        "RS256", description="what it signs with; a token that names another is refused"
    )
    key_file: Path | None = Field(
        None, description="its public keys in a file: a JWKS, or one key as PEM"
    )
    jwks_url: str | None = Field(
        None,
        validate_default=True,
        description="their address instead: https, or http on this machine",
    )
    create_accounts: bool = Field(
        False, description="true: whoever is not linked to an account gets one of their own"
    )
    name_claim: Literal["sub", "preferred_username", "email"] = Field(
        "preferred_username", description="what such an account is called"
    )
    admin_claim: str | None = Field(
        None,
        min_length=1,
        description="claim that decides who is an administrator, such as `roles`; "
        "unset: their account does",
    )
    admin_value: str = Field(
        "portal-admin", min_length=1, description="what that claim is, or has in its list"
    )

    @field_validator("audience")
    @classmethod
    def _has_an_audience(cls, value: str | None, info: ValidationInfo) -> str | None:
        if info.data.get("issuer") and value is None:
            # Tokens that this issuer gives out for other services would open this one too.
            raise ValueError("the audience of this portal, since there is an outside issuer")
        return value

    @field_validator("jwks_url")
    @classmethod
    def _is_private(cls, value: str | None, info: ValidationInfo) -> str | None:
        if info.data.get("issuer") and (value is None) == (info.data.get("key_file") is None):
            raise ValueError("the address of the issuer's keys, or nothing where KEY_FILE is set")
        if value is None:
            return None
        if not info.data.get("issuer"):
            raise ValueError("nothing, while PORTAL_JWT__OUTSIDE__ISSUER is unset")
        parts = urlsplit(_http_address(value))
        if parts.scheme == "http" and parts.hostname not in {"localhost", "127.0.0.1", "::1"}:
            # Whoever answers there says whose signature counts.
            raise ValueError("an address that begins with https://")
        return value


class JwtSettings(Section):
    """What our tokens claim, and whose others count."""

    issuer: str = Field("portal", min_length=1, description="`iss`")
    audience: str = Field("portal", min_length=1, description="`aud`")
    leeway_s: int = Field(60, ge=0, le=600, description="clock skew that is forgiven")
    access_ttl_s: int = Field(3600, ge=60, le=86400, description="life of an access token")
    refresh_ttl_s: int = Field(
        1209600, ge=3600, le=7776000, description="life of a refresh token and of a browser session"
    )
    outside: OutsideIssuerSettings = OutsideIssuerSettings()

    @field_validator("outside")
    @classmethod
    def _is_another(
        cls, value: OutsideIssuerSettings, info: ValidationInfo
    ) -> OutsideIssuerSettings:
        if value.issuer is not None and value.issuer == info.data.get("issuer"):
            raise ValueError("an issuer that is not called as we are in PORTAL_JWT__ISSUER")
        return value


class WebSettings(Section):
    """How much a web process takes on; what is more is told at once to come back later."""

    requests_at_once: int = Field(16, ge=1, le=1000, description="requests it works on at once")
    requests_waiting: int = Field(
        64, ge=0, le=1000, description="requests that may wait for their turn; more get 503"
    )
    patience_s: float = Field(
        3.0, ge=0, le=60, description="how long they wait, sign-ins three times as long; then 503"
    )


class RateLimitSettings(Section):
    """How often a person may ask."""

    enabled: bool = Field(True, description="false lifts all limits but those of sign-in")
    sign_in: str = Field("10 per minute", description="failed attempts an address and name")
    sign_in_address: str = Field("60 per minute", description="failed attempts an address")
    sign_in_name: str = Field(
        "100 per hour", description="failed attempts a name, from browsers that are new to it"
    )
    default: str = Field("600 per minute", description="everything that has no limit of its own")
    search_semantic: str = Field("30 per minute", description="POST /api/v1/search/semantic")
    search_text: str = Field("60 per minute", description="POST /api/v1/search/text")
    search_hybrid: str = Field(
        "20 per minute", description="POST /api/v1/search/hybrid; `search` by MCP"
    )
    search_similar: str = Field("40 per minute", description="GET /api/v1/search/similar")
    search_batch: str = Field("10 per minute", description="POST /api/v1/search/batch")
    list_chunks: str = Field("100 per minute", description="GET /api/v1/jobs/{id}/chunks")
    get_chunk: str = Field(
        "200 per minute", description="GET /api/v1/jobs/{id}/chunks/{id}; `fetch` by MCP"
    )

    @field_validator("*")
    @classmethod
    def _is_limit(cls, value: str | bool, info: ValidationInfo) -> str | bool:
        if isinstance(value, str):
            rates = _rates(value)
            is_sign_in = str(info.field_name).startswith("sign_in")
            if is_sign_in and min(rates) > _MOST_SIGN_INS_A_SECOND:
                raise ValueError(
                    f"at most {_MOST_SIGN_INS_A_SECOND} attempts a second: sign-in is never free"
                )
        return value


class IngestSettings(Section):
    """How documents are taken apart."""

    chunk_tokens: int = Field(300, ge=50, le=480, description="length of a passage, about")
    max_pages: int = Field(5000, ge=1, description="pages a PDF may have")
    max_characters: int = Field(20_000_000, ge=1000, description="characters a document may have")
    extraction_timeout_s: int = Field(300, ge=1, le=3600, description="time to read one file")
    extraction_memory_mb: int = Field(1024, ge=256, description="memory to read one file")
    ocr_timeout_s: int = Field(
        1800, ge=1, le=86400, description="time to recognise the text of one scanned file"
    )


class McpSettings(Section):
    """What AI clients get of `portal mcp`."""

    fetch_characters: int = Field(
        50_000, ge=1000, le=1_000_000, description="most of a document's text in one answer"
    )


class ChromaSettings(Section):
    """How collections of Chroma's are searched."""

    lexical_leg: Literal["native", "own"] = Field(
        "native", description="`own` ranks words here where Chroma has no BM25 index of its own"
    )


def _environment_name(path: tuple[str, ...]) -> str:
    top_level = {"database_url": "DATABASE_URL", "redis_url": "REDIS_URL"}
    top_level["use_hybrid_search"] = "USE_HYBRID_SEARCH"
    if len(path) == 1 and path[0] in top_level:
        return top_level[path[0]]
    return "PORTAL_" + "__".join(part.upper() for part in path)


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
    ] = Field(None, description="your PostgreSQL; unset: an embedded one in the data directory")
    redis_url: Annotated[
        str | None, Field(validation_alias=AliasChoices("REDIS_URL", "redis_url"))
    ] = Field(None, description="shared limits and caches; unset: in memory")
    use_hybrid_search: Annotated[
        str | None, Field(validation_alias=AliasChoices("USE_HYBRID_SEARCH", "use_hybrid_search"))
    ] = Field(None, description="`true`, `1`, `yes` make `semantic_search` hybrid")
    data_dir: Path = Field(Path("var"), description="database, keys and logs live here")
    admin_password: SecretStr | None = Field(
        None, description="the first administrator's; unset: a random one, printed once"
    )
    secret_key: SecretStr | None = Field(
        None, description="signs tokens; unset: made once, kept in the data directory, mode 600"
    )
    registration: Literal["invite", "open", "closed"] = Field(
        "invite", description="who may make an account"
    )
    max_upload_mb: int = Field(50, ge=1, le=10240, description="largest file")
    vector_store_enabled: bool = Field(
        True, description="false answers 503 where vectors are needed"
    )
    public_url: str = Field(
        "http://127.0.0.1:8000",
        description="where people open the portal; addresses that leave it begin with it",
    )
    trusted_proxies: int = Field(
        0, ge=0, le=10, description="proxies in front whose X-Forwarded-* headers count"
    )
    metrics_public: bool = Field(True, description="false: /metrics only for administrators")
    log_format: Literal["json", "console"] = Field("console", description="shape of log lines")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least")
    database_pool_size: int = Field(10, ge=1, le=200, description="connections a process keeps")
    database_pool_timeout_s: float = Field(
        1.0, gt=0, le=60, description="patience for one of them; then 503"
    )
    web: WebSettings = WebSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    rerank: RerankSettings = RerankSettings()
    chat: ChatSettings = ChatSettings()
    search: SearchSettings = SearchSettings()
    jwt: JwtSettings = JwtSettings()
    rate_limits: RateLimitSettings = RateLimitSettings()
    ingest: IngestSettings = IngestSettings()
    mcp: McpSettings = McpSettings()
    chroma: ChromaSettings = ChromaSettings()

    @field_validator("public_url")
    @classmethod
    def _begins_addresses(cls, value: str) -> str:
        parts = urlsplit(_http_address(value))
        if parts.query or parts.fragment:
            raise ValueError("an address without ? and #")
        return value.rstrip("/")

    @property
    def web_process_threads(self) -> int:
        """Enough for all that a web process takes on, and a few that are never busy for long: they
        tell the rest to come back later, and operators how it is."""
        web = self.web
        answers = self.chat.concurrent_answers
        return web.requests_at_once + web.requests_waiting + answers + _SPARE_THREADS

    def with_requests_at_once(self, count: int | None) -> Settings:
        """These settings with another number; None: as they are."""
        if count is None:
            return self
        return self.model_copy(
            update={"web": self.web.model_copy(update={"requests_at_once": count})}
        )

    @property
    def max_upload_bytes(self) -> int:
        return self.max_upload_mb * 1024 * 1024

    @property
    def hybrid_semantic_search(self) -> bool:
        """Whether `semantic_search` of seed 003 is hybrid; anything unclear means no."""
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
        """Arguments, then the environment, then the YAML file."""
        path = Path(os.environ.get("PORTAL_CONFIG", "portal.yaml"))
        return (init_settings, env_settings, YamlConfigSettingsSource(settings_cls, path))


def load_settings(**overrides: Any) -> Settings:
    """Read the settings. Raises InvalidSetting with the first wrong value's name."""
    try:
        return Settings(**overrides)
    except ValidationError as error:
        first = error.errors()[0]
        path = tuple(str(part) for part in first["loc"])
        name = path[0] if path[0].isupper() else _environment_name(path)
        secret = name.endswith(("KEY", "PASSWORD", "URL")) or "@" in str(first.get("input"))
        got = "a value that is not shown" if secret else repr(first.get("input"))
        raise InvalidSetting(name=name, got=got, takes=_takes(first)) from None


def _takes(error: Any) -> str:
    if error["type"] == "extra_forbidden":
        return "no value: there is no such setting (docs/settings.md lists them)"
    return str(error["msg"]).replace("Input should be ", "").replace("Value error, ", "")


def _fields(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        nested = field.annotation
        if isinstance(nested, type) and issubclass(nested, BaseModel):
            yield from _fields(nested, (*path, name))
        else:
            yield _environment_name((*path, name)), field


def _type_words(field: FieldInfo) -> str:
    text = str(field.annotation).replace("typing.", "").replace("pydantic.types.", "")
    words = {"<class 'str'>": "text", "<class 'int'>": "whole number", "<class 'float'>": "number"}
    words |= {"<class 'bool'>": "true or false", "<class 'pathlib.Path'>": "path"}
    words |= {"<class 'pathlib._local.Path'>": "path"}
    text = words.get(text, text)
    if text.startswith("Literal["):
        text = ", ".join(f"`{word.strip(chr(39))}`" for word in text[8:-1].split(", "))
    text = text.replace(" | None", "").replace("SecretStr", "secret text")
    text = {"str": "text", "int": "whole number", "pathlib.Path": "path"}.get(text, text)
    limits = [f"{type(m).__name__.lower()} {next(iter(vars_of(m)))}" for m in field.metadata]
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<", "minlen": "length ≥"}
    spoken = [f"{signs[k]} {v}" for k, v in (item.split(" ", 1) for item in limits) if k in signs]
    return ", ".join([text, *spoken])


def vars_of(metadata: Any) -> list[Any]:
    """Values of an annotated-types constraint such as Ge(ge=1)."""
    slots = getattr(type(metadata), "__slots__", ()) or getattr(metadata, "__dict__", {})
    return [getattr(metadata, name) for name in slots] or [""]


def settings_page() -> str:
    """docs/settings.md, from the fields."""
    lines = [
        "# Settings",
        "",
        "Made from `portal/settings.py` by `python -m portal.settings`; do not edit by hand.",
        "",
        "Values come from `portal.yaml` (path in `PORTAL_CONFIG`) and, above it, the environment.",
        "In YAML the levels that two underscores part are nested:",
        "`PORTAL_SEARCH__HNSW__M=24` is `search: {hnsw: {m: 24}}`.",
        "A wrong value stops the start with its name, what it got and what it takes.",
        "",
        "| setting | takes | default | what it does |",
        "|---|---|---|---|",
    ]
    for name, field in _fields(Settings):
        default = "unset" if field.default is None else f"`{field.default}`".replace("True", "true")
        default = default.replace("False", "false")
        lines.append(f"| `{name}` | {_type_words(field)} | {default} | {field.description} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Print the settings page, or with ``--check FILE`` say whether FILE is in step."""
    page = settings_page()
    if arguments[:1] == ["--check"]:
        path = Path(arguments[1])
        if path.is_file() and path.read_text(encoding="utf-8") == page:
            return 0
        print(f"{path} is behind the code: run `python -m portal.settings > {path}`")
        return 1
    sys.stdout.write(page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
