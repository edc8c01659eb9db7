import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from sarb.errors import SarbError
from sarb.label_studio.host import Host


def personal_token(number=1):
    claims = base64.urlsafe_b64encode(json.dumps({"token_type": "refresh", "n": number}).encode())
    return f"head.{claims.decode().rstrip('=')}.signature"


@pytest.fixture
def server():
    """A server like Label Studio's: exchanges a personal token, and lets an access token serve twice."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append((self.path, self.headers.get("Authorization")))
            if self.path == "/elsewhere":
                self.reply(302, b"", {"Location": "http://127.0.0.2:1/steal"})
            elif self.path == "/api/import/file-upload/7":
                self.reply(200, b'{"file": "upload/3/ab12-a b.jpg"}')
            elif self.headers.get("Authorization") in allowed:
                self.reply(200, b"content")
            else:
                self.reply(401, b"{}")

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append((self.path, body))
            if self.path == "/api/token/refresh/":
                allowed[:] = [f"Bearer access-{len(seen)}", "Token legacy"]
                self.reply(200, json.dumps({"access": allowed[0].split()[1]}).encode())
            else:
                self.reply(201, b'{"file_upload_ids": [7]}')

        def reply(self, status, content, headers=None):
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    seen, allowed = [], ["Token legacy"]
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.seen, made.allowed = seen, allowed
    made.url = f"http://127.0.0.1:{made.server_port}"
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def test_a_legacy_token_is_sent_as_it_is(server):
    assert Host(server.url, "legacy").get("/data/upload/1/a.jpg") == b"content"
    assert server.seen == [("/data/upload/1/a.jpg", "Token legacy")]


def test_a_personal_token_is_exchanged_and_again_when_the_short_one_ran_out(server):
    host = Host(server.url, personal_token())
    assert host.get("/one") == host.get(f"{server.url}/two") == b"content"
    assert [path for path, _ in server.seen] == ["/api/token/refresh/", "/one", "/two"]
    server.allowed.clear()
    assert host.get("/three") == b"content"
    assert [path for path, _ in server.seen][3:] == ["/three", "/api/token/refresh/", "/three"]


def test_a_wrong_token_is_one_clear_error_that_does_not_show_it(server):
    with pytest.raises(SarbError, match=r"/one: HTTP 401 .*LABEL_STUDIO_API_KEY right") as error:
        Host(server.url, "secret").get("/one")
    assert "secret" not in str(error.value) and "secret" not in repr(Host(server.url, "secret"))


def test_no_other_server_gets_the_token(server):
    host = Host(server.url, "legacy")
    with pytest.raises(SarbError, match="not on http://127"):
        host.get("http://127.0.0.2:1/a.jpg")
    with pytest.raises(SarbError, match=r"127\.0\.0\.2:1, which is not followed"):
        host.get("/elsewhere")


def test_upload(server, tmp_path):
    file = tmp_path / "a b.jpg"
    file.write_bytes(b"\xff\xd8 picture")
    assert Host(server.url, "legacy").upload(3, file) == "/data/upload/3/ab12-a%20b.jpg"
    path, body = server.seen[0]
    assert path == "/api/projects/3/import?commit_to_project=false"
    assert b"\xff\xd8 picture" in body and b'filename="a b.jpg"' in body


def test_addresses():
    with pytest.raises(SarbError, match="is not the address"):
        Host("localhost:8080")
    with pytest.raises(SarbError, match="cannot be reached"):
        Host("http://127.0.0.1:1", "legacy").get("/a")
