"""Bad uploads, fuzzed requests, many large photos and slow clients against a real server on 127.0.0.1.

Where a case is a batch of requests, its name says so: a server is started per case.
"""

from __future__ import annotations

import io
import json
import os
import random
import socket
import threading
import time
from collections import Counter
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.faults.bench import BrokenPromiseError, Kind
from tests.faults.servers import FORM, Server, few_descriptors, form
from tests.faults.small_run import small_run

MEGABYTE = 1024 * 1024
#: requests in one case
BATCH = 50
FUZZ = 500
#: photos at the same time, by case
PHOTOS = (4, 60, 60)
SLOW = 400


@cache
def _photo(width: int = 48, height: int = 48, kind: str = "JPEG") -> bytes:
    """A photo with some detail, so that its file is not tiny."""
    chance = np.random.default_rng(0)
    blocks = chance.integers(0, 255, (-(-height // 8), -(-width // 8), 3), dtype=np.uint8)
    pixels = np.kron(blocks, np.ones((8, 8, 1), np.uint8))[:height, :width]
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind)
    return buffer.getvalue()


def _check(server: Server, status: int, what: str, counts: Counter[str]) -> None:
    """No 5xx but 503; a server that closes the connection must live."""
    if status >= 500 and status != 503:
        raise BrokenPromiseError(f"HTTP {status} for {what}; {server.log()[-3000:]}")
    counts[
        "503" if status == 503 else "closed" if status == 0 else "refused" if status >= 400 else "taken"
    ] += 1


def _honest(server: Server) -> None:
    """A good photo is answered."""
    status, body = server.send_photo(_photo())
    if status != 200 or json.loads(body)[0].get("error"):
        raise BrokenPromiseError(f"an honest photo: HTTP {status}: {body[:300]!r}")
    server.alive()


# bad uploads


def _bad_photo(chance: random.Random) -> bytes:
    """An image that is damaged, lies about its size, or is none."""
    kind = chance.choice(("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM"))
    content = bytearray(_photo(kind=kind))
    how = chance.randrange(6)
    if how == 0:
        return bytes(content[: chance.randrange(len(content))])
    if how == 1:
        for _ in range(chance.randrange(1, 30)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        return bytes(content)
    if how == 2:  # a header that is damaged, with its sizes
        for _ in range(chance.randrange(1, 6)):
            content[chance.randrange(min(64, len(content)))] = chance.randrange(256)
        return bytes(content)
    if how == 3:
        return chance.randbytes(chance.randrange(5000))
    if how == 4:
        return bytes(content) + chance.randbytes(chance.randrange(5000))
    return _bomb(chance.choice(((13000, 13000), (60000, 2000), (1, 65000), (20000, 20000))))


@cache
def _bomb(size: tuple[int, int]) -> bytes:
    buffer = io.BytesIO()
    Image.new("1", size).save(buffer, "PNG")
    return buffer.getvalue()


def _bad_upload(chance: random.Random) -> tuple[bytes, str]:
    """The body of an upload, and its content type."""
    how = chance.randrange(8)
    body = form({chance.choice(("a.jpg", "ä\x00.png", '"', "../../x", "")): _bad_photo(chance)})
    if how < 4:
        return body, FORM
    if how == 4:
        return body[: chance.randrange(len(body))], FORM
    if how == 5:
        return form(
            {f"{number}.jpg": _bad_photo(chance) for number in range(chance.choice((0, 3, 17, 40)))}
        ), FORM
    if how == 6:
        kinds = (
            "multipart/form-data",
            "multipart/form-data; boundary=",
            "multipart/form-data; boundary=other",
            "multipart/form-data; boundary=sarb; charset=unicode_escape",
            "multipart/form-data; boundary=sarb; charset=idna",
            "multipart/form-data; boundary=" + "x" * 300,
            "application/x-www-form-urlencoded",
            "application/json",
            "\xff\xfe",
        )
        return body, chance.choice(kinds)
    changed = bytearray(body)
    for _ in range(chance.randrange(1, 20)):
        changed[chance.randrange(min(300, len(changed)))] = chance.randrange(256)
    return bytes(changed), FORM


def _bad_uploads(folder: Path, case: int) -> str:
    chance = random.Random(case)
    counts: Counter[str] = Counter()
    with Server(folder) as server:
        server.forget_peak()
        for number in range(BATCH):
            body, kind = _bad_upload(chance)
            status, _ = server.ask("/api/predict", body, kind)
            _check(server, status, f"upload {number} of case {case}", counts)
        _honest(server)
        if server.peak() > 1500 * MEGABYTE:
            raise BrokenPromiseError(f"{server.peak() // MEGABYTE} MB of memory")
    return _said(counts)


def _said(counts: Counter[str]) -> str:
    return f"{counts['503']} × 503" if counts["503"] else "no 5xx"


# fuzzed bodies

REVIEW: dict[str, dict[str, Any]] = {
    "/api/review/next": {"who": "ann", "category": "red", "count": 3, "order": "likely", "ahead": 2},
    "/api/review/answer": {"who": "ann", "question": "0-0-0000000000", "answer": "yes", "assisted": True},
    "/api/review/page": {
        "who": "ann",
        "page": "p1",
        "answers": {"0-0-0000000000": "no"},
        "order": "doubtful",
    },
    "/api/review/undo": {"who": "ann", "question": "0-0-0000000000"},
    "/api/review/reopen": {"who": "ann", "category": "green"},
}
CONFIG = (
    '<View><Image name="image" value="$image"/><Choices name="red" toName="image"><Choice value="yes"/>'
    '<Choice value="no"/></Choices></View>'
)
TASK = {
    "id": 1,
    "data": {"image": "/data/local-files/?d=0.png", "file_name": "0.png", "labels": {"red": "yes"}},
}
ANNOTATION = {
    "id": 5,
    "result": [{"from_name": "red", "to_name": "image", "value": {"choices": ["yes"]}}],
    "was_cancelled": False,
}
STUDIO: dict[str, dict[str, Any]] = {
    "/setup": {"schema": CONFIG, "access_token": "abc"},
    "/validate": {"config": CONFIG},
    "/predict": {"tasks": [TASK], "label_config": CONFIG},
    "/webhook": {
        "action": "ANNOTATION_CREATED",
        "project": {"id": 1},
        "annotation": ANNOTATION,
        "task": TASK,
    },
    "/train": {"annotations": [{**TASK, "annotations": [ANNOTATION]}], "project": "1.123"},
}
#: values that break careless code, as Python objects or as text
ODD = (
    *(
        None,
        True,
        -1,
        0,
        10**30,
        1e300,
        -0.0,
        "",
        "\x00",
        "a" * 3000,
        [],
        {},
        [[]],
        {"": None},
        "../..",
        "ä\u2028",
    ),
    *(
        "\U0001f600",
        "http://[",
        "http://[::1",
        "data:x",
        "/data/upload/../x",
        "/data/upload/\n",
        "%",
        "%ff",
        "<!DOCTYPE x>",
    ),
)
RAW = (
    *(
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
        b"1e999",
        b"9" * 5000,
        b'{"a":1,"a":2}',
    ),
    *(b"[" * 100_000, b'{"a":' * 5000, b"\xff", b'"\x00"', b"", b"'a'", b'{"who":"\\uD800"}', b"[1,]"),
)


def _mutate(value: Any, chance: random.Random) -> Any:
    """Replace, drop or add something at a random place of some JSON."""
    if not isinstance(value, dict | list) or not value or chance.random() < 0.3:
        return chance.choice(ODD)
    changed: Any = value.copy()
    place = chance.choice(list(value)) if isinstance(value, dict) else chance.randrange(len(value))
    how = chance.random()
    if how < 0.15:
        changed.pop(place)
    elif how < 0.25 and isinstance(changed, dict):
        changed[chance.choice(("who", "action", "id", "x", "\x00"))] = chance.choice(ODD)
    else:
        changed[place] = _mutate(value[place], chance)
    return changed


def _fuzzed(value: Any, chance: random.Random) -> bytes:
    """The body of a request that is nearly right."""
    for _ in range(chance.randrange(1, 4)):
        value = _mutate(value, chance)
    text = bytearray(json.dumps(value, ensure_ascii=chance.random() < 0.5).encode())
    how = chance.random()
    if how < 0.3 and text:  # something that is no JSON, or JSON that few expect, in place of a value
        place = text.find(b":", chance.randrange(len(text))) + 1
        end = text.find(b",", place)
        text[place : end if end > 0 else len(text) - 1] = chance.choice(RAW)
    elif how < 0.4:
        text = bytearray(chance.choice(RAW))
    elif how < 0.5 and text:
        for _ in range(chance.randrange(1, 5)):
            text[chance.randrange(len(text))] = chance.randrange(256)
    return bytes(text)


def _fuzz(routes: dict[str, dict[str, Any]], words: list[str | Path], folder: Path, case: int) -> str:
    chance = random.Random(case)
    counts: Counter[str] = Counter()
    base = small_run() / "data"
    made = [str(word).format(data=base, folder=folder) for word in words]
    paths = [*routes, "/api/info", "/", "/report", "/static/app.js", "/api/images/0", "/api/images/0/heat/0"]
    with Server(folder, made) as server:
        for number in range(FUZZ):
            path = (
                chance.choice(list(routes))
                if chance.random() < 0.9
                else _odd_path(chance.choice(paths), chance)
            )
            body = _fuzzed(routes.get(path, {"who": "ann"}), chance)
            kind = (
                "application/json"
                if chance.random() < 0.95
                else chance.choice(("text/plain", "", FORM, "a/b;charset=x"))
            )
            method = (
                ""
                if chance.random() < 0.95
                else chance.choice(("GET", "PUT", "DELETE", "OPTIONS", "HEAD", "X"))
            )
            status, reply = server.ask(path, body, kind, method)
            _check(
                server,
                status,
                f"{method} {path} {body[:300]!r} ({number} of case {case}): {reply[:300]!r}",
                counts,
            )
        _honest(server)
    if not counts["taken"] or not counts["refused"]:
        raise BrokenPromiseError(f"the requests are of one kind only: {counts}")
    return _said(counts)


def _odd_path(path: str, chance: random.Random) -> str:
    odd = (
        "%00",
        "%ff",
        "/../..",
        "?token=x",
        "?a[]=1",
        "%2e%2e/",
        "//",
        "/99999999999999999999",
        "/-1",
        ";x",
    )
    return path + chance.choice(odd)


# many large photos


def _many_photos(folder: Path, case: int) -> str:
    """Photos of 24 megapixels at the same time; with odd sides they are not shrunk on the way."""
    photo = _photo(6000, 4000) if case == 1 else _photo(5999, 3999)
    photos = PHOTOS[case]
    counts: Counter[str] = Counter()
    with Server(folder) as server:
        _honest(server)
        start = server.memory()
        server.forget_peak()
        statuses: list[tuple[int, bytes]] = []
        threads = [
            threading.Thread(target=lambda: statuses.append(server.send_photo(photo))) for _ in range(photos)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for status, reply in statuses:
            _check(server, status, repr(reply[:300]), counts)
        peak = server.peak()
        if counts["taken"] < photos // 2:
            raise BrokenPromiseError(f"few were answered: {counts}")
        if peak > 1500 * MEGABYTE:
            raise BrokenPromiseError(f"{peak // MEGABYTE} MB at the peak, {start // MEGABYTE} MB before")
        deadline = time.monotonic() + 30
        while (kept := server.memory() - start) > 150 * MEGABYTE:
            if time.monotonic() > deadline:
                raise BrokenPromiseError(f"{kept // MEGABYTE} MB are kept")
            time.sleep(0.5)
        _honest(server)
        if os.environ.get("SARB_FAULT_FIGURES"):
            print(
                f"{start // MEGABYTE} MB, peak {peak // MEGABYTE}, after {server.memory() // MEGABYTE}: {counts}"
            )
    return _said(counts)


# slow clients


def _slow_head(connection: socket.socket, port: int) -> None:
    connection.sendall(b"POST /api/predict HTTP/1.1\r\nHost: 127.0")


def _slow_body(connection: socket.socket, port: int) -> None:
    head = f"POST /api/predict HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: {FORM}\r\n"
    connection.sendall(head.encode() + b"Content-Length: 1000000\r\n\r\n--sarb\r\n")


def _silent(connection: socket.socket, port: int) -> None:
    """Connect, and say nothing."""


def _deaf(connection: socket.socket, port: int) -> None:
    """Ask for much, and read nothing."""
    connection.sendall(f"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode() * 20)


def _slow_clients(folder: Path, case: int) -> str:
    ways = [(_slow_head,), (_slow_body,), (_silent,), (_deaf,), (_slow_head, _slow_body, _silent, _deaf)][
        case % 5
    ]
    with Server(folder, before=few_descriptors) as server:
        connections = []
        try:
            for number in range(SLOW):
                connection = server.connect()
                connections.append(connection)
                with suppress(OSError):  # it may be closed already
                    ways[number % len(ways)](connection, server.port)
            start = time.monotonic()
            _honest(server)
            waited = time.monotonic() - start
            for connection in connections:  # a drop more, now and then
                with suppress(OSError):
                    connection.send(b"x", socket.MSG_DONTWAIT)
            _honest(server)
        finally:
            for connection in connections:
                connection.close()
        if waited > 5:
            raise BrokenPromiseError(f"an honest photo took {waited:.1f} s")
        if len(server.log()) > MEGABYTE:
            raise BrokenPromiseError(f"a log of {len(server.log()):,} bytes")
        _honest(server)
        if os.environ.get("SARB_FAULT_FIGURES"):
            print(f"{ways}: honest photo in {waited:.2f} s, log {len(server.log())} bytes")
    return "answered in time"


LIVES = "No 5xx but a counted 503, no traceback; an honest photo is answered afterwards."
REVIEW_WORDS: list[str | Path] = [
    "--labels",
    "{data}/labels.csv",
    "-o",
    "encoding=binary",
    "--out",
    "{folder}/out.csv",
]
STUDIO_WORDS: list[str | Path] = [*REVIEW_WORDS, "--label-studio", "--local-root", "{data}"]
KINDS = [
    Kind(f"serve: {BATCH} bad uploads", f"{LIVES} Under 1.5 GB of memory.", 1000 // BATCH, 1, _bad_uploads),
    Kind(f"serve: {FUZZ} fuzzed bodies, review", LIVES, 10, 1, partial(_fuzz, REVIEW, REVIEW_WORDS)),
    Kind(f"serve: {FUZZ} fuzzed bodies, Label Studio", LIVES, 10, 1, partial(_fuzz, STUDIO, STUDIO_WORDS)),
    Kind(
        f"serve: {', '.join(map(str, PHOTOS))} photos of 24 megapixels at once",
        "Under 1.5 GB of memory, and within 150 MB of the start after 30 s.",
        len(PHOTOS),
        1,
        _many_photos,
    ),
    Kind(
        f"serve: {SLOW} slow connections, 256 descriptors",
        "An honest photo is answered within 5 s; the log stays under 1 MB.",
        5,
        1,
        _slow_clients,
    ),
]
