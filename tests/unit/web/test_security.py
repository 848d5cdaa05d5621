"""Headers on every response, form tokens, and redirects that stay on this site."""

from __future__ import annotations

import re

import pytest
from flask import request

from portal.http import context, cookies
from portal.web import security


@pytest.mark.parametrize("path", ["/documents", "/search?q=a%20b", "/documents/1#chunk-2", "/"])
def test_a_local_path_is_kept(path):
    assert security.local_path(path) == path


@pytest.mark.parametrize(
    "address",
    [
        None,
        "",
        "documents",
        "//evil.example",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "https://evil.example/",
        "javascript:alert(1)",
        "/a\r\nSet-Cookie: x=1",
        "/\tevil.example",
    ],
)
def test_address_of_another_site_is_not_followed(address):
    assert security.local_path(address) is None


@pytest.mark.parametrize("path", ["/login", "/nothing-here", "/static/x/css/base.css"])
def test_every_response_has_the_content_security_policy(app, path):
    headers = app.test_client().get(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"


def test_form_without_its_token_is_refused_with_a_message(app):
    answer = app.test_client().post("/login", data={"name": "a", "password": "b"})
    assert answer.status_code == 403
    assert "This form has expired" in answer.text


def test_a_bearer_request_needs_no_form_token(app):
    headers = {"Authorization": "Bearer not-ours"}
    answer = app.test_client().post("/preferences/theme", data={"theme": "dark"}, headers=headers)
    assert answer.status_code == 303


@pytest.mark.parametrize(
    ("header", "token"),
    [("Basic YWRhOnB3", "cookie"), ("bearer  x ", "x"), ("Bearer", ""), ("", "cookie")],
)
def test_only_a_bearer_header_overrides_the_cookie(app, header, token):
    headers = {"Authorization": header, "Cookie": f"{cookies.SESSION}=cookie"}
    with app.test_request_context(headers=headers):
        assert context.read_token(request) == token


def test_session_cookie_of_forms_is_hidden_from_scripts(app):
    cookie = app.test_client().get("/login").headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Secure" not in cookie
    over_https = app.test_client().get("/login", base_url="https://portal.example")
    assert "Secure" in over_https.headers["Set-Cookie"]


def test_language_form_sets_its_cookie_and_goes_back(app):
    client = app.test_client()
    token = re.search(r'name="csrf_token" value="([^"]+)"', client.get("/login").text)[1]
    form = {"csrf_token": token, "language": "zh-CN", "next": "/login?next=/trash"}
    answer = client.post("/preferences/language", data=form)
    assert answer.status_code == 303
    assert answer.headers["Location"] == "/login?next=/trash"
    page = client.get("/login").text
    assert '<html lang="zh-CN"' in page
    assert "登录" in page


def test_anonymous_reader_is_sent_to_sign_in_and_back(app):
    answer = app.test_client().get("/search?q=水")
    assert answer.status_code == 303
    assert answer.headers["Location"].startswith("/login?next=/search?q%3D")


def test_anonymous_fragment_request_redirects_the_page(app):
    headers = {"HX-Request": "true", "HX-Current-URL": "http://localhost/documents?q=a"}
    answer = app.test_client().get("/documents/progress", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["HX-Redirect"] == "/login?next=/documents?q%3Da"
    assert answer.text == ""


@pytest.mark.parametrize(
    ("languages", "words"), [("en", "Not found"), ("zh-CN,zh;q=0.9", "未找到")]
)
def test_error_page_is_in_the_readers_language(app, languages, words):
    answer = app.test_client().get("/nothing", headers={"Accept-Language": languages})
    assert answer.status_code == 404
    assert words in answer.text
    assert answer.headers["X-Request-ID"] in answer.text


def test_response_to_a_wrong_method_lists_the_allowed_ones(app):
    answer = app.test_client().delete("/login", headers={"Authorization": "Bearer x"})
    assert answer.status_code == 405
    assert "POST" in answer.headers["Allow"]


def test_static_files_are_cached_under_their_current_address_only(app):
    client = app.test_client()
    page = client.get("/login").text
    current = re.search(r'href="(/static/[^"]+app\.css)"', page)[1]
    assert "immutable" in client.get(current).headers["Cache-Control"]
    assert client.get("/static/0000/css/base.css").headers["Cache-Control"] == "no-cache"
    vendor = re.search(r'src="(/static/vendor/[^"]+)"', page)[1]
    assert "htmx" in client.get(vendor).text
    assert client.get("/static/vendor/0/other.js").status_code == 404
    assert client.get("/static/0/../../portal.yaml").status_code == 404


def test_form_token_differs_in_each_response_and_stays_good(app):
    client = app.test_client()
    pages = [client.get("/login").text for _ in range(2)]
    tokens = [
        set(re.findall(r'csrf_?token"(?: value=|: )"([^"]+)"', page, re.IGNORECASE))
        for page in pages
    ]
    assert [len(token) for token in tokens] == [1, 1]
    assert tokens[0] != tokens[1]
    for (given,) in tokens:
        form = {"csrf_token": given, "theme": "dark"}
        assert client.post("/preferences/theme", data=form).status_code == 303


@pytest.mark.parametrize("token", ["", "x", "####", "\u77e5", "AAB4"])
def test_unknown_form_token_is_refused(app, token):
    client = app.test_client()
    client.get("/login")
    form = {"csrf_token": token, "theme": "dark"}
    assert client.post("/preferences/theme", data=form).status_code == 403
