"""From the command line to a running server."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sarb.model import load_model
from sarb.runs.again import train_again
from sarb.serve.app import create_app
from sarb.serve.connections import Door
from sarb.serve.desk import Desk
from sarb.serve.label_studio_open import LabelStudio, open_backend
from sarb.serve.listening import address, check_certificate, listen, on_loopback, server
from sarb.serve.memory import keep_little
from sarb.serve.opening import PHOTOS, open_desk
from sarb.serve.recogniser import Recogniser
from sarb.serve.say import say
from sarb.serve.token import given_token, new_token
from sarb.workflows.labelled import run_source


def serve(
    run: Path,
    *,
    labels: str | None = None,
    options: Mapping[str, Any] | None = None,
    out: Path | None = None,
    ask: str | None = None,
    assist: bool = False,
    host: str = "127.0.0.1",
    port: int = 8000,
    token_file: Path | None = None,
    tls: tuple[Path, Path] | None = None,
    label_studio: LabelStudio | None = None,
) -> int:
    """Serve a run or model folder until a signal; return the exit code: 130 for Ctrl-C, 143 for SIGTERM.

    Args:
        run: the folder.
        labels: data source to review; with ``ask``, the run's own by default.
        options: of the data source.
        out: the CSV for the answers.
        ask: the split whose photos are asked about, ``"train"`` by default.
        assist: show the model's opinion with every question.
        host: address to listen on.
        port: port to listen on; 0 takes any free one.
        token_file: file with the token that requests must know; off loopback there is always one.
        tls: files with a certificate and its key, for HTTPS.
        label_studio: be its ML backend; there is no review then, and ``labels`` take its answers.
    """
    check_certificate(tls)
    own = given_token(token_file)
    listening = listen(host, port)  # first: a port in use is an error before the model is loaded
    listening.tls = tls
    with listening:
        token = own or ("" if on_loopback(listening) else new_token())
        keep_little()
        recogniser = Recogniser(load_model(run))
        desk = backend = None
        if label_studio is not None:
            backend = open_backend(run, recogniser, label_studio, labels, options or {}, out)
        elif labels is None and ask is not None:
            labels, options, _ = run_source(run, None, options)
        if labels is not None and backend is None:
            desk = open_desk(
                recogniser, labels, options or {}, out, ask=ask or "train", assist=assist, run=run
            )
        app = create_app(run, recogniser, desk, backend=backend, host=host, token=token)
        if desk is not None:
            counts = desk.progress()
            say(
                f"review: {counts['open']:,} of {counts['questions']:,} labels to ask about, all of "
                f"{PHOTOS[desk.ask]}; answers go to {desk.out}"
            )
        link = address(host, listening)
        say(f"serving {run} at {link}/ (Ctrl-C to stop)")
        if token:
            say(f"open {link}/?token={'YOUR_TOKEN' if own else token} in a browser; others are refused")
        if tls is None and not on_loopback(listening):
            say("the network can read along; --tls-certificate and --tls-key encrypt it")
        code = _until_stopped(app, listening)
        answered = desk is not None and desk.out.exists()
        say("stopped; every answer is saved" if answered or backend is not None else "stopped")
        if desk is not None and answered:
            print(f"next: {_following(run, desk)}", file=sys.stderr, flush=True)
        return code


def _following(run: Path, desk: Desk) -> str:
    """The command that uses the answers: train the run again, or evaluate it on the photos that were audited."""
    if desk.ask == "train":
        return shlex.join(["sarb", *train_again(run, desk.reading.source, desk.reading.options)])
    return desk.reading.command("sarb", "evaluate", str(run), "--split", desk.ask, "--data")


def _until_stopped(app: Any, listening: Door) -> int:
    caught: list[int] = []
    previous = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        # the server catches the signal, shuts down cleanly, and then raises it again for us
        previous[number] = signal.signal(number, lambda number, _: caught.append(number))
    try:
        server(app, listening).run(sockets=[listening])
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    return 128 + caught[-1] if caught else 0
