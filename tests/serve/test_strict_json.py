"""JSON that is none, or that few programs agree on, is refused with a reason and never an error of ours."""

import json

import pytest

pytest.importorskip("fastapi", reason="needs the extra [serve]: pip install 'sarb[serve]'")

from sarb.serve.strict_json import DEPTH, LONG, strict_loads

WRONG = [
    (b"NaN", "NaN is not JSON"),
    (b"[Infinity]", "Infinity is not JSON"),
    (b'{"a": -Infinity}', "-Infinity is not JSON"),
    (b"1e999", "too large"),
    (b'{"a": 1, "a": 2}', "same name twice"),
    (b'"\\ud800"', "surrogate"),
    (b'{"\\uDC00": 1}', "surrogate"),
    (b'"\xff"', "not UTF-8"),
    (b"[" * 100_000, "nested"),
    (b"[" * (DEPTH + 1) + b"]" * (DEPTH + 1), "nested"),
    (b'{"a":' * (DEPTH + 1) + b"1" + b"}" * (DEPTH + 1), "nested"),
    (b"9" * 5000, "Exceeds the limit"),
    (b"{", "Expecting"),
]


@pytest.mark.parametrize(("body", "reason"), WRONG)
def test_refused_with_a_reason(body, reason):
    with pytest.raises(ValueError, match=reason):
        strict_loads(body)


def test_what_json_can_say():
    value = {"ä": [1, -2.5, None, True, "\U0001f600", {}], "wide": [[]] * 100}
    for ascii_only in (True, False):
        assert strict_loads(json.dumps(value, ensure_ascii=ascii_only).encode()) == value
    deepest = b"[" * DEPTH + b"]" * DEPTH
    assert strict_loads(deepest) == json.loads(deepest)


@pytest.mark.parametrize("body", [body for body, _ in WRONG])
@pytest.mark.parametrize("padding", [0, LONG])
def test_on_a_route(client, body, padding):
    head = {"Content-Type": "application/json"}
    reply = client.post("/api/review/next", content=body + b" " * padding, headers=head)
    assert reply.status_code == 400 and isinstance(reply.json()["detail"], str)


def test_a_mistake_is_named_but_not_sent_back(client):
    reply = client.post("/api/review/next", json={"who": "x" * 5000})
    assert reply.status_code == 422 and len(reply.content) < 500
    assert reply.json()["detail"][0]["loc"] == ["body", "who"]
