import pytest

pytest.importorskip("fastapi", reason="needs the extra [serve]: pip install 'sarb[serve]'")

from sarb.serve.guard import known_host


@pytest.mark.parametrize(
    ("header", "listening", "known"),
    [
        ("127.0.0.1:8000", "127.0.0.1", True),
        ("localhost:8000", "127.0.0.1", True),
        ("LOCALHOST", "127.0.0.1", True),
        ("[::1]:8000", "::1", True),
        ("127.0.0.1:8000", "localhost", True),
        ("evil.example:8000", "127.0.0.1", False),
        ("127.0.0.1.evil.example", "127.0.0.1", False),
        ("localhost.evil.example", "0.0.0.0", False),
        ("192.168.1.5:8000", "127.0.0.1", False),
        ("192.168.1.5:8000", "0.0.0.0", True),
        ("192.168.1.5:8000", "192.168.1.5", True),
        ("evil.example", "0.0.0.0", False),
        ("desk.lan:8000", "desk.lan", True),
        ("", "127.0.0.1", False),
        ("[::1", "127.0.0.1", False),
        ("user@evil.example", "127.0.0.1", False),
    ],
)
def test_names_of_this_server(header, listening, known):
    assert known_host(header, listening) is known


def test_the_own_name_is_known_to_a_server_for_all(monkeypatch):
    import socket

    monkeypatch.setattr(socket, "gethostname", lambda: "Desk")
    monkeypatch.setattr(socket, "getfqdn", lambda: "desk.lan")
    assert known_host("desk:8000", "0.0.0.0") and known_host("desk.lan", "0.0.0.0")
    assert not known_host("desk:8000", "127.0.0.1")
