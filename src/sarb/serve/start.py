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
from numpy.typing import NDArray

from sarb.data import load
from sarb.errors import ImageError, SarbError
from sarb.inference.prediction import match_categories, predict
from sarb.model import load_model
from sarb.scores import Scores
from sarb.serve.app import create_app
from sarb.serve.desk import Desk
from sarb.serve.journal import journal_of
from sarb.serve.order import order
from sarb.serve.questions import Questions
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
    """Serve a run or model folder until a signal; return the exit code: 130 for Ctrl-C, 143 for SIGTERM."""
    listening = listen(host, port)  # first: a port in use is an error before the model is loaded
    with listening:
        recogniser = Recogniser(load_model(run))
        desk = None if labels is None else open_desk(recogniser, labels, options or {}, out)
        app = create_app(run, recogniser, desk, host=host)
        if host not in LOOPBACK:
            say(f"warning: anyone who can reach {host} can use this server; it has no password")
        if desk is not None:
            counts = desk.progress()
            say(
                f"review: {counts['open']:,} of {counts['questions']:,} labels to ask about; "
                f"answers go to {desk.out}"
            )
        shown = f"[{host}]" if ":" in host else host
        say(f"serving {run} at http://{shown}:{listening.getsockname()[1]}/ (Ctrl-C to stop)")
        return _until_stopped(app, listening)


def say(text: str) -> None:
    """Print a message to stderr."""
    print(f"sarb: {text}", file=sys.stderr, flush=True)


def _until_stopped(app: Any, listening: socket.socket) -> int:
    caught: list[int] = []
    previous = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        # the server catches the signal, shuts down cleanly, and then raises it again for us
        previous[number] = signal.signal(number, lambda number, _: caught.append(number))
    try:
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=5)
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    say("stopped; every answer is saved")
    return 128 + caught[-1] if caught else 0


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes any free port."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, socket_type, protocol, _, address = addresses[0]
        listening = socket.socket(family, socket_type, protocol)
    except OSError as error:
        raise SarbError(f"cannot listen on host '{host}' ({error.strerror})") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)
    except OSError as error:
        listening.close()
        hint = "choose another with --port, or any free one with --port 0"
        raise SarbError(f"cannot listen on {host}, port {port} ({error.strerror}); {hint}") from None
    return listening


def open_desk(recogniser: Recogniser, labels: str, options: Mapping[str, Any], out: Path | None) -> Desk:
    """Read the labels, score their images, rank the questions, and resume the review if there was one."""
    table = Table(load(labels, **options))
    path = check_target(out or table.default_out())
    _refuse_answers(table, path)
    if table.labels.known.all():
        raise SarbError(f"{labels}: every label is known; there is nothing to review")
    for part in table.data.splits.values():
        match_categories(recogniser.model, part)  # raises if they differ
    scores, readable = _scored(recogniser, table, path)
    columns = [recogniser.categories.index(name) for name in table.labels.categories]
    scores = Scores(scores.logits[:, columns], table.labels.categories, table.labels.paths)
    entries, reasons = order(scores, table.labels, recogniser.calibration, readable)
    questions = Questions(table.labels, entries, recogniser.probabilities(scores), reasons)
    desk = Desk(table, questions, path)
    if desk.ignored:
        say(
            f"ignored {desk.ignored:,} earlier answers about labels that are known or gone now; "
            "they stay in the journal"
        )
    return desk


def _refuse_answers(table: Table, out: Path) -> None:
    """Say how to resume a review if its output is given as the labels."""
    source = table.data.train.source
    if source is None or not (source.exists() and out.exists() and journal_of(out).exists()):
        return
    if out.samefile(source):
        raise SarbError(
            f"{out}: this is the source itself, which a review never changes. "
            "To resume a review, pass its original table (--labels labels.csv); your answers are kept. "
            "To review this file, choose another --out"
        )


def _scored(recogniser: Recogniser, table: Table, out: Path) -> tuple[Scores, NDArray[np.bool_]]:
    """Return the scores of all images, 0 for unreadable ones, and which images can be read (N,).

    Scores from the last start are reused if neither the model nor the photo has changed.
    """
    skipped: list[tuple[str, str]] = []
    cache = ScoreCache(recogniser.model, out, table.files)
    logits, known = cache.read()
    unscored = [file for file, scored in zip(table.files, known, strict=True) if not scored]
    fresh = predict(recogniser.model, unscored, progress=bool(unscored), skipped=skipped)
    for _, reason in skipped:
        say(f"skipped: {reason}")
    unreadable = {name for name, _ in skipped}
    readable = known | np.array([str(file) not in unreadable for file in table.files])
    if not readable.any():
        raise ImageError("none of the images can be read")
    logits[readable & ~known] = fresh.logits
    if len(fresh):
        with suppress(OSError):  # if they cannot be stored, the next start computes them again
            cache.write(logits, readable)
    return Scores(logits, recogniser.categories, table.labels.paths), readable
