"""A wrong value stops the start with an error that names its setting and shows no secrets."""

from __future__ import annotations

from typing import Any

import pytest

from portal.errors import InvalidSetting
from portal.settings import load_settings

SECRETS = ("short-secret", "密", "user:password")
OIDC = {"issuer": "https://id.example.org", "client_id": "portal"}
JWKS = {"jwks_url": "https://id.example.org/keys"}
OUTSIDE = {"issuer": "https://issuer.example.org", "audience": "portal"}


@pytest.mark.parametrize(
    ("given", "name"),
    [
        *(({"secret_key": key}, "SECRET_KEY") for key in ("short-secret", "k" * 31)),
        ({"secret_key_old": "short-secret"}, "SECRET_KEY_OLD"),
        *(
            ({"trusted_hosts": value}, "TRUSTED_HOSTS")
            for value in ("https://portal.example.org", "portal:8000", "*", "a b")
        ),
        ({"rate_limits": {"sign_in": ""}}, "RATE_LIMITS__SIGN_IN"),
        ({"rate_limits": {"sign_in": "1000000 per hour"}}, "RATE_LIMITS__SIGN_IN"),
        ({"rate_limits": {"sign_in_name": "100 per second"}}, "RATE_LIMITS__SIGN_IN_NAME"),
        ({"rate_limits": {"default": "often"}}, "RATE_LIMITS__DEFAULT"),
        ({"rate_limits": {"search_text": "0 per minute"}}, "RATE_LIMITS__SEARCH_TEXT"),
        ({"search": {"max_top_k": 4, "default_top_k": 5}}, "SEARCH__DEFAULT_TOP_K"),
        ({"search": {"hybrid": {"vector_weight": 0, "text_weight": 0}}}, "SEARCH__HYBRID"),
        ({"tracing": {"endpoint": "collector:4318"}}, "TRACING__ENDPOINT"),
        ({"oidc": {"issuer": "https://id.example.org"}}, "OIDC__CLIENT_ID"),
        ({"oidc": {"client_id": "portal"}}, "OIDC__CLIENT_ID"),
        ({"oidc": OIDC | {"client_id": "two words"}}, "OIDC__CLIENT_ID"),
        *(
            ({"oidc": OIDC | {"issuer": issuer}}, "OIDC__ISSUER")
            for issuer in (
                "http://id.example.org",
                "http://localhost.evil.example",
                "file:///etc/passwd",
                "https://id.example.org/?x",
                "https://user:password@id.example.org",
            )
        ),
        *(({"oidc": OIDC | {"client_secret": one}}, "OIDC__CLIENT_SECRET") for one in ("密", "")),
        ({"oidc": OIDC | {"scopes": "profile"}}, "OIDC__SCOPES"),
        ({"oidc": OIDC | {"second_factor": "sometimes"}}, "OIDC__SECOND_FACTOR"),
        ({"oidc": {"only": True}}, "OIDC__ONLY"),
        ({"oidc": OIDC | {"onyl": True}}, "OIDC__ONYL"),
        ({"jwt": {"outside": OUTSIDE}}, "JWT__OUTSIDE__JWKS_URL"),
        ({"jwt": {"outside": JWKS}}, "JWT__OUTSIDE__JWKS_URL"),
        ({"jwt": {"outside": JWKS | {"issuer": "https://x.org"}}}, "JWT__OUTSIDE__AUDIENCE"),
        ({"jwt": {"outside": OUTSIDE | JWKS | {"issuer": "portal"}}}, "JWT__OUTSIDE"),
        *(
            ({"jwt": {"outside": OUTSIDE | {"jwks_url": url}}}, "JWT__OUTSIDE__JWKS_URL")
            for url in ("http://x.example.org", "file:///etc/passwd", "http://localhost.evil")
        ),
        *(
            ({"jwt": {"outside": {"algorithm": algorithm}}}, "JWT__OUTSIDE__ALGORITHM")
            for algorithm in ("HS256", "none")
        ),
    ],
    ids=str,
)
def test_wrong_value_stops_the_start_with_the_name_of_its_setting(
    given: dict[str, Any], name: str
) -> None:
    with pytest.raises(InvalidSetting, match=rf"PORTAL_{name}\b") as refused:
        load_settings(**given)
    assert not [secret for secret in SECRETS if secret in str(refused.value)]


@pytest.mark.parametrize(
    ("given", "takes"),
    [
        ({"max_upload_mb": "abc"}, "a whole number, ≥ 1, ≤ 10240"),
        ({"max_upload_mb": 0}, "a whole number, ≥ 1, ≤ 10240"),
        ({"metrics_public": "maybe"}, "true or false"),
        ({"search": {"hybrid": {"vector_weight": 3}}}, "a number, ≥ 0, ≤ 1"),
        ({"registration": "all"}, "'invite', 'open' or 'closed'"),
    ],
)
def test_error_about_a_wrong_value_says_what_the_setting_takes(
    given: dict[str, Any], takes: str
) -> None:
    with pytest.raises(InvalidSetting) as refused:
        load_settings(**given)
    assert str(refused.value).endswith(f"but takes {takes}.")


def test_error_about_a_short_key_says_how_to_make_a_longer_one() -> None:
    with pytest.raises(InvalidSetting, match=r"32 bytes.*token_urlsafe"):
        load_settings(secret_key="short-secret")
