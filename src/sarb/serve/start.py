"""From the command line to a running server."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn

from sarb.data import load
from sarb.errors import ImageError, SarbError
from sarb.inference.prediction import match_categories, predict
from sarb.model import load_model
from sarb.scores import Scores
from sarb.serve.app import create_app
from sarb.serve.desk import Desk
from sarb.serve.journal import journal_of
from sarb.serve.order import order
from sarb.serve.recogniser import Recogniser
from sarb.serve.score_cache import ScoreCache
from sarb.serve.table import Table, check_target

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve(
    run: Path,
    *,
    labels: str | None = None,
    options: Mapping[str, Any] | None = None,
    out: Path | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
) -> int:
    """Serve a run or model folder until a signal comes; return the exit code (130 after Ctrl-C, 143 after
    SIGTERM).
    """
    listening = listen(host, port)  # first, so that a taken port is known before a model is loaded
    with listening:
        recogniser = Recogniser(load_model(run))
        desk = None if labels is None else open_desk(recogniser, labels, options or {}, out)
        app = create_app(run, recogniser, desk, host=host)
        if host not in LOOPBACK:
            say(f"warning: everybody who can reach {host} can use this server; it has no password")
        if desk is not None:
            counts = desk.progress()
            say(
                f"review: {counts['open']:,} of {counts['questions']:,} labels to ask; answers go to {desk.out}"
            )
        shown = f"[{host}]" if ":" in host else host
        say(f"serving {run} at http://{shown}:{listening.getsockname()[1]}/ (Ctrl-C stops)")
        return _until_stopped(app, listening)


def say(text: str) -> None:
    """Talk goes to stderr."""
    print(f"sarb: {text}", file=sys.stderr, flush=True)


def _until_stopped(app: Any, listening: socket.socket) -> int:
    stopped: list[int] = []
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        # the server catches the signal, ends well, and then raises it again for us
        before[number] = signal.signal(number, lambda caught, _: stopped.append(caught))
    try:
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=5)
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    say("stopped; every answer is saved")
    return 128 + stopped[-1] if stopped else 0


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes any free one."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, protocol)
    except OSError as error:
        raise SarbError(f"host '{host}': {error.strerror}") from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(128)
    except OSError as error:
        made.close()
        hint = "choose another with --port, or any free one with --port 0"
        raise SarbError(f"cannot listen on {host}, port {port} ({error.strerror}); {hint}") from None
    return made


def open_desk(recogniser: Recogniser, labels: str, options: Mapping[str, Any], out: Path | None) -> Desk:
    """Read the labels, score their images, rank the questions, and take up the review where it was left."""
    table = Table(load(labels, **options))
    place = check_target(out or table.default_out())
    _refuse_answers(table, place)
    if table.labels.known.all():
        raise SarbError(f"{labels}: every label is known, there is nothing to review")
    for part in table.data.splits.values():
        match_categories(recogniser.model, part)  # says which differ
    scores, readable = _scored(recogniser, table, place)
    columns = [recogniser.categories.index(name) for name in table.labels.categories]
    scores = Scores(scores.logits[:, columns], table.labels.categories, table.labels.paths)
    places, reasons = order(scores, table.labels, recogniser.calibration, readable)
    desk = Desk(table, places, recogniser.probabilities(scores), place, reasons)
    if desk.ignored:
        say(
            f"{desk.ignored:,} earlier answers are about labels that are known now, or gone; they stay in the journal"
        )
    return desk


def _refuse_answers(table: Table, out: Path) -> None:
    """Say how to go on when the file of the answers is given as the labels."""
    source = table.data.train.source
    if (
        source is not None
        and out.exists()
        and source.exists()
        and out.samefile(source)
        and journal_of(out).exists()
    ):
        raise SarbError(
            f"{out}: this is the source itself, which a review never changes; to go on with a review, give the table "
            "it began with again (--labels labels.csv): your answers are taken up. For another one, choose --out"
        )


def _scored(recogniser: Recogniser, table: Table, out: Path) -> tuple[Scores, Any]:
    """Scores of all images in the model's order, 0 for unreadable ones, and which can be read (N,).

    Those of the last start are used again where the model and the photo are still the same.
    """
    skipped: list[tuple[str, str]] = []
    cache = ScoreCache(recogniser.model, out, table.files)
    logits, known = cache.read()
    rest = [file for file, there in zip(table.files, known, strict=True) if not there]
    found = predict(recogniser.model, rest, progress=bool(rest), skipped=skipped)
    for _, reason in skipped:
        say(f"skipped: {reason}")
    bad = {name for name, _ in skipped}
    readable = known | np.array([str(file) not in bad for file in table.files])
    if not readable.any():
        raise ImageError("none of the images can be read")
    logits[readable & ~known] = found.logits
    if len(found):
        with suppress(OSError):  # without a place to keep them they are computed again next time
            cache.write(logits, readable)
    return Scores(logits, recogniser.categories, table.labels.paths), readable
