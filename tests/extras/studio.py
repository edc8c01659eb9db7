"""Label Studio itself as a process, a personal access token for it, and a witness of what it asks for."""

import http.cookiejar
import json
import os
import re
import signal
import socket
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.waiting import PATIENCE, wait_until

USER = "ann@example.org"
PASSWORD = "only-for-this-test"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Studio:
    """A fresh server with SQLite. Legacy tokens stay off, as they are by default."""

    def __init__(self, program, folder, document_root):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "label-studio.log"
        environment = {
            **os.environ,
            "LABEL_STUDIO_BASE_DATA_DIR": str(folder / "data"),
            "LABEL_STUDIO_USERNAME": USER,
            "LABEL_STUDIO_PASSWORD": PASSWORD,
            "LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED": "true",
            "LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT": str(document_root),
            # both servers are on this computer, which Label Studio refuses otherwise
            "ML_BLOCK_LOCAL_IP": "false",
            "SSRF_PROTECTION_ENABLED": "false",
            "COLLECT_ANALYTICS": "false",
        }
        environment.pop("PYTHONPATH", None)
        words = [program, "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(self.port)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                words, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        wait_until(self._up, f"Label Studio answers, see {self.log}")

    def _up(self):
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=PATIENCE) as reply:
                return reply.status == 200
        except OSError:
            return False

    def token(self):
        """Log in as the page does, and make a personal access token."""
        cookies = http.cookiejar.CookieJar()
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(cookies))
        page = opener.open(f"{self.url}/user/login/", timeout=PATIENCE).read().decode()
        hidden = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[1]
        form = {"csrfmiddlewaretoken": hidden, "email": USER, "password": PASSWORD}
        opener.open(f"{self.url}/user/login/", urllib.parse.urlencode(form).encode(), timeout=PATIENCE).read()
        secret = next(cookie.value for cookie in cookies if "csrf" in cookie.name)
        request = urllib.request.Request(
            f"{self.url}/api/token/", b"", {"X-CSRFToken": secret, "Referer": self.url}, method="POST"
        )
        return json.load(opener.open(request, timeout=PATIENCE))["token"]

    def close(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(PATIENCE)


class Witness:
    """Stands between Label Studio and the ML backend: passes every request on, and notes who asked for what."""

    def __init__(self, target):
        self.target = target
        self.seen = []
        witness = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.pass_on(None)

            def do_POST(self):
                self.pass_on(self.rfile.read(int(self.headers.get("Content-Length", 0))))

            def pass_on(self, body):
                request = urllib.request.Request(
                    witness.target + self.path,
                    body,
                    {"Content-Type": "application/json"},
                    method=self.command,
                )
                try:
                    with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
                        status, content = reply.status, reply.read()
                except urllib.error.HTTPError as error:
                    status, content = error.code, error.read()
                # kept before the reply goes out, so that whoever waits for the reply finds it here
                witness.seen.append((self.path, self.headers.get("User-Agent", ""), body, status))
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def bodies(self, path):
        return [json.loads(body) for asked, _, body, _ in self.seen if asked == path and body]

    def close(self):
        self.server.shutdown()
        self.server.server_close()
