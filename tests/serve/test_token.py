"""The token: in a header, in a cookie that the link sets, and nowhere else."""

import base64

import pytest

pytest.importorskip("fastapi", reason="needs the extra [serve]: pip install 'sarb[serve]'")

from fastapi.testclient import TestClient

from sarb.errors import SarbError
from sarb.serve.app import create_app
from sarb.serve.token import given_token
from tests.serve.conftest import HOME

TOKEN = "a-very-secret-token"
EVERYWHERE = (
    "/",
    "/api/info",
    "/report",
    "/static/app.js",
    "/openapi.json",
    "/health",
    "/api/review",
    "/none",
)


@pytest.fixture
def guarded(run, recogniser, desk):
    app = create_app(run, recogniser, desk, host="0.0.0.0", token=TOKEN)
    with TestClient(app, base_url=HOME, follow_redirects=False) as client:
        yield client


@pytest.mark.parametrize("path", EVERYWHERE)
def test_nothing_without_it(guarded, path):
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Token {TOKEN}"},
        {"Authorization": "Basic !!!"},
        {"Cookie": f"sarb-8000={TOKEN}"},
        {"Cookie": b"sarb-8000=\xff"},
    ):
        for reply in (guarded.get(path, headers=headers), guarded.post(path, headers=headers)):
            assert reply.status_code == 401 and "token" in reply.json()["detail"]
            assert reply.headers["x-content-type-options"] == "nosniff"


def test_in_a_header(guarded):
    basic = base64.b64encode(f"anyone:{TOKEN}".encode()).decode()
    for value in (f"Bearer {TOKEN}", f"bearer {TOKEN}", f"Basic {basic}"):
        assert guarded.get("/api/info", headers={"Authorization": value}).status_code == 200


def test_the_link_sets_a_cookie_and_leaves_the_address(guarded):
    wrong = guarded.get("/?token=wrong")
    assert wrong.status_code == 401 and "set-cookie" not in wrong.headers
    reply = guarded.get(f"/?token={TOKEN}")
    assert reply.status_code == 303 and reply.headers["location"] == "/"
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Secure" not in cookie
    assert TOKEN not in cookie
    for path in ("/", "/api/info", "/static/app.js", "/report"):
        assert guarded.get(path).status_code == 200
    assert guarded.get("/?token=wrong").status_code == 401


def test_a_link_leads_nowhere_else(guarded):
    assert guarded.get(f"//evil.example/?token={TOKEN}").headers["location"] == "/"


def test_the_cookie_is_for_https_only_under_tls(run, recogniser):
    app = create_app(run, recogniser, token=TOKEN)
    with TestClient(app, base_url="https://127.0.0.1:8000", follow_redirects=False) as client:
        assert "; Secure" in client.get(f"/?token={TOKEN}").headers["set-cookie"]


def test_other_sites_are_refused_even_with_it(guarded):
    headers = {"Authorization": f"Bearer {TOKEN}", "Origin": "http://evil.example"}
    assert guarded.get("/api/info", headers=headers).status_code == 403
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}
    assert guarded.get("/api/info", headers=headers).status_code == 421


def test_where_it_comes_from(tmp_path, monkeypatch):
    monkeypatch.delenv("SARB_TOKEN", raising=False)
    assert given_token(None) == ""
    monkeypatch.setenv("SARB_TOKEN", TOKEN)
    assert given_token(None) == TOKEN
    file = tmp_path / "token"
    file.write_text("another-secret-token\n")
    assert given_token(file) == "another-secret-token"


@pytest.mark.parametrize(
    "content", [b"", b"short", b"with a space in it ...", b"\xff" * 30, "ä".encode() * 20]
)
def test_a_token_that_is_none(tmp_path, content):
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(SarbError, match=r"--token-file .*token: expected"):
        given_token(file)
    with pytest.raises(SarbError, match="no such file"):
        given_token(tmp_path)


def test_a_short_token_in_the_environment(monkeypatch):
    monkeypatch.setenv("SARB_TOKEN", "abc")
    with pytest.raises(SarbError, match="SARB_TOKEN: expected a token of at least 16"):
        given_token(None)
