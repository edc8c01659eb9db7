"""How much may arrive in one request and in all."""

import asyncio

import pytest

pytest.importorskip("fastapi", reason="needs the extra [serve]: pip install 'sarb[serve]'")

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from sarb.serve.bodies import JSON_GROWS, Bodies

FORM = Headers({"content-type": "multipart/form-data; boundary=x"})
JSON = Headers({"content-type": "application/json"})


async def _take(receive, times):
    for _ in range(times):
        await receive()


def _sender(size):
    async def receive():
        return {"type": "http.request", "body": b"x" * size, "more_body": True}

    return receive


def test_one_request_without_a_length():
    bodies = Bodies(limit=100)
    with bodies.counted(_sender(40), FORM) as receive:
        asyncio.run(_take(receive, 2))
        with pytest.raises(HTTPException) as error:
            asyncio.run(_take(receive, 1))
    assert error.value.status_code == 413 and bodies.held == 0


def test_all_requests_together():
    bodies = Bodies(limit=1000, together=100)
    with bodies.counted(_sender(60), FORM) as first, bodies.counted(_sender(60), FORM) as second:
        asyncio.run(_take(first, 1))
        with pytest.raises(HTTPException) as error:
            asyncio.run(_take(second, 1))
        assert error.value.status_code == 503 and error.value.headers["Retry-After"]
    assert bodies.held == 0
    with bodies.counted(_sender(60), FORM) as alone:
        asyncio.run(_take(alone, 3))


def test_json_counts_as_what_it_becomes():
    bodies = Bodies()
    with bodies.counted(_sender(10), JSON) as receive:
        asyncio.run(_take(receive, 1))
        assert bodies.held == 10 * JSON_GROWS


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, None),
        ({"content-length": "100", "content-type": "multipart/form-data"}, None),
        ({"content-length": "101"}, 413),
        ({"content-length": "9" * 30}, 413),
        ({"content-length": "-1"}, 413),
        ({"content-length": "\u0663"}, 413),
        ({"content-type": "application/json; charset=UTF-8"}, None),
        ({"content-type": 'application/json; charset="utf-8"'}, None),
        ({"content-type": "multipart/form-data; boundary=x; charset=unicode_escape"}, 415),
        ({"content-type": "multipart/form-data; charset*=utf-8''idna"}, 415),
    ],
)
def test_headers(headers, status):
    raw = [(name.encode(), value.encode("utf-8")) for name, value in headers.items()]
    refusal = Bodies(limit=100).refusal(Headers(raw=raw))
    assert (refusal and refusal[0]) == status
