"""The socket that the server listens on, its certificate, and the server on it."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from pathlib import Path
from typing import Any

import uvicorn

from sarb.errors import SarbError
from sarb.serve.connections import BURST, Connection, Door


def listen(host: str, port: int) -> Door:
    """Return a listening socket; port 0 takes any free port."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, socket_type, protocol, _, address = addresses[0]
        listening = Door(family, socket_type, protocol)
    except OSError as error:
        raise SarbError(f"cannot listen on host '{host}' ({error.strerror})") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
    except OSError as error:
        listening.close()
        hint = "choose another with --port, or any free one with --port 0"
        raise SarbError(f"cannot listen on {host}, port {port} ({error.strerror}); {hint}") from None
    return listening


def on_loopback(listening: socket.socket) -> bool:
    """Whether only this computer can reach a socket."""
    return ipaddress.ip_address(listening.getsockname()[0].partition("%")[0]).is_loopback


def check_certificate(tls: tuple[Path, Path] | None) -> None:
    """Raise a clear error if the files are no certificate with its key."""
    if tls is None:
        return
    for option, file in zip(("--tls-certificate", "--tls-key"), tls, strict=True):
        if not file.is_file():
            raise SarbError(f"{option} {file}: no such file")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*tls, password=lambda: "")
    except OSError as error:  # an ssl.SSLError is one
        reason = getattr(error, "reason", None) or error.strerror or str(error)
        raise SarbError(
            f"--tls-certificate {tls[0]}, --tls-key {tls[1]}: not a certificate and its key, both PEM and the key "
            f"without a password ({str(reason).replace('_', ' ').lower()})"
        ) from None


def address(host: str, door: Door) -> str:
    """The address to open: for all interfaces, this computer's name."""
    everywhere = host in ("0.0.0.0", "::")
    name = socket.gethostname() if everywhere else f"[{host}]" if ":" in host else host
    return f"http{'s' if door.tls else ''}://{name}:{door.getsockname()[1]}"


def server(app: Any, door: Door) -> uvicorn.Server:
    """Return a server that has limits for slow clients."""
    protocol = type("Connection", (Connection,), {"door": door})
    certificate, key = door.tls or (None, None)
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        loop="asyncio",  # the loop that asks our socket for connections
        backlog=BURST,
        log_config=None,  # a new configuration closes the handlers of others, and with some their streams
        log_level="error",  # nobody may fill the log with requests that are none
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
        ssl_certfile=certificate,
        ssl_keyfile=None if key is None else str(key),
    )
    return uvicorn.Server(config)
