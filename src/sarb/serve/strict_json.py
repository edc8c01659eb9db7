"""JSON as its standard has it: no NaN, no half of a character, no name twice, no towers of brackets."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

#: most levels of lists and objects
DEPTH = 64
#: bodies of more bytes are read on another thread
LONG = 65536
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def strict_loads(body: bytes) -> Any:
    """Return what a body says.

    Raises:
        ValueError: one line with the reason.
    """
    try:
        text = body.decode("utf-8")
        value = json.loads(
            text, parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_without_twins
        )
    except UnicodeDecodeError:
        raise ValueError("the JSON is not UTF-8") from None
    except RecursionError:
        raise ValueError(_too_deep()) from None
    if text.count("[") + text.count("{") > DEPTH:
        _check_depth(value)
    if _HALF.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError("the JSON has half of a surrogate pair, which is no character") from None
    return value


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:20]} is too large")
    return number


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object of the JSON has the same name twice")
    return found


def _check_depth(value: Any) -> None:
    level = _containers([value])
    for _ in range(DEPTH):
        level = [
            inner
            for item in level
            for inner in _containers(item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return
    raise ValueError(_too_deep())


def _containers(items: Iterable[Any]) -> list[Any]:
    return [item for item in items if isinstance(item, dict | list)]


def _too_deep() -> str:
    return f"the JSON is nested more than {DEPTH} levels deep"


class StrictRequest(Request):
    """A request whose body is strict JSON."""

    async def json(self) -> Any:
        """Return the body; a reply of 400 says what is wrong with it."""
        body = await self.body()
        try:
            if len(body) > LONG:
                return await asyncio.to_thread(strict_loads, body)
            return strict_loads(body)
        except ValueError as error:
            raise HTTPException(400, str(error)) from None


class StrictRoute(APIRoute):
    """A route that takes strict JSON only: ``APIRouter(route_class=StrictRoute)``."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Read the body strictly."""
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handler(StrictRequest(request.scope, request.receive))

        return strict
