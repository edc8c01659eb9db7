"""The certificate: checked at the start, and used."""

import http.client
import logging
import ssl
import subprocess
import threading

import pytest

pytest.importorskip("fastapi", reason="needs the extra [serve]: pip install 'sarb[serve]'")

from sarb.errors import SarbError
from sarb.serve.app import create_app
from sarb.serve.listening import address, check_certificate, listen, on_loopback, server
from tests.documentation.tools import run as command
from tests.waiting import PATIENCE, wait_until


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    """A certificate for 127.0.0.1 and its key."""
    folder = tmp_path_factory.mktemp("tls")
    files = folder / "certificate.pem", folder / "key.pem"
    words = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "1",
        "-subj",
        "/CN=127.0.0.1",
    ]
    words += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(files[0]), "-keyout", str(files[1])]
    try:
        subprocess.run(words, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("needs the program openssl to make a certificate")
    return files


def test_https(run, recogniser, tls):
    with listen("127.0.0.1", 0) as door:
        door.tls = tls
        check_certificate(tls)
        assert address("127.0.0.1", door).startswith("https://127.0.0.1:")
        running = server(create_app(run, recogniser, token="a-very-secret-token"), door)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [door]})
        thread.start()
        wait_until(lambda: running.started, "the server listens")
        try:
            context = ssl.create_default_context(cafile=tls[0])
            client = http.client.HTTPSConnection(*door.getsockname(), context=context, timeout=PATIENCE)
            client.request("GET", "/?token=a-very-secret-token")
            reply = client.getresponse()
            assert reply.status == 303 and "; Secure" in reply.headers["Set-Cookie"]
            reply.read()
            client.request("GET", "/api/info", headers={"Authorization": "Bearer a-very-secret-token"})
            assert client.getresponse().status == 200
            client.close()
        finally:
            running.should_exit = True
            thread.join()


def test_files_that_are_no_certificate(tls, tmp_path):
    other = tmp_path / "other.pem"
    for files, said in (
        ((tmp_path / "none.pem", tls[1]), "--tls-certificate .*none.pem: no such file"),
        ((tls[0], tmp_path), "--tls-key .*: no such file"),
        ((tls[1], tls[0]), "not a certificate and its key"),
        ((other, tls[1]), "not a certificate and its key"),
    ):
        other.write_text("nothing")
        with pytest.raises(SarbError, match=said):
            check_certificate(files)
    locked = tmp_path / "locked.pem"
    words = ["openssl", "rsa", "-aes128", "-passout", "pass:secret", "-in", str(tls[1]), "-out", str(locked)]
    subprocess.run(words, check=True, capture_output=True)
    with pytest.raises(SarbError, match="without a password"):
        check_certificate((tls[0], locked))


def test_both_or_none(tmp_path, monkeypatch, capsys):
    assert command(["sarb", "serve", str(tmp_path), "--tls-key", "key.pem"], monkeypatch) == 2
    assert "--tls-certificate and --tls-key go together" in capsys.readouterr().err


def test_who_is_on_loopback():
    for host, own in (("127.0.0.1", True), ("127.0.0.2", True), ("localhost", True), ("0.0.0.0", False)):
        with listen(host, 0) as door:
            assert on_loopback(door) is own


def test_the_logging_of_others_is_left_alone(run, recogniser):
    """uvicorn's own configuration closes all handlers; absl's then closes its stream, here pytest's output."""

    class Handler(logging.StreamHandler):
        closed = False

        def close(self):
            self.closed = True
            super().close()

    handler = Handler()
    with listen("127.0.0.1", 0) as door:
        server(create_app(run, recogniser), door)
    assert not handler.closed
