"""Reviewers and the server that is killed under them; reviewers who only want to be in the way."""

from __future__ import annotations

import csv
import json
import random
import shutil
import threading
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from tests.faults.bench import BrokenPromiseError, Kind
from tests.faults.servers import Server
from tests.faults.small_run import COLOURS, small_run
from tests.waiting import PATIENCE

CLIENTS = 8
#: answers of each client and kills of the server, by case: a short one, then 8 × 500 answers and 20 kills in four
ROUNDS = ((20, 1), *[(125, 5)] * 4)
HOSTILE = 500
CODES = {"yes": "1", "no": "0"}


@cache
def _table() -> Path:
    """A table with 1,200 unknown labels, and as many known ones as a table needs."""
    folder = small_run() / "many"
    folder.mkdir()
    with (folder / "labels.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["file_name", "split", *COLOURS])
        for number in range(404):
            shutil.copy(small_run() / "data" / f"{number % 24}.png", folder / f"{number}.png")
            codes = [number % 2] * 3 if number < 4 else [""] * 3
            table.writerow([f"{number}.png", "train", *codes])
    return folder / "labels.csv"


def _words(table: Path, out: Path) -> list[str | Path]:
    return ["--labels", table, "-o", "encoding=binary", "-o", "test=0", "--out", out]


class _Reviewers:
    """Clients that answer, and send an answer again until it is acknowledged, as the page does."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.acknowledged: list[tuple[str, str, str, str]] = []
        self.broken: list[str] = []

    def _tell(self, path: str, **content: Any) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                status, body = self.server.ask(path, json.dumps(content).encode())
            except OSError:
                status = 0
            if status == 200:
                return dict(json.loads(body))
            if status:
                raise BrokenPromiseError(f"{path}: HTTP {status}: {body[:300]!r}")
            time.sleep(0.05)  # the server was killed; it comes back
        raise BrokenPromiseError("the server does not come back")

    def answer(self, who: str, seed: int, answers: int) -> None:
        """Answer some questions."""
        chance = random.Random(seed)
        try:
            for _ in range(answers):
                (asked,) = self._tell("/api/review/next", who=who, count=1)["next"]
                word = chance.choice(list(CODES))
                self._tell("/api/review/answer", who=who, question=asked["id"], answer=word, count=1)
                self.acknowledged.append((who, asked["file_name"], asked["label"], word))
        except (BrokenPromiseError, ValueError) as error:
            self.broken.append(f"{who}: {error}")


def _killed(folder: Path, case: int) -> str:
    chance = random.Random(case)
    answers, kills = ROUNDS[case]
    out = folder / "out.csv"
    words = _words(_table(), out)
    reviewers = _Reviewers(Server(folder, words))
    clients = [
        threading.Thread(target=reviewers.answer, args=(f"client {number}", 100 * case + number, answers))
        for number in range(CLIENTS)
    ]
    moments = sorted(chance.sample(range(CLIENTS * (answers - 1)), kills))
    for client in clients:
        client.start()
    try:
        for moment in moments:
            while len(reviewers.acknowledged) < moment and not reviewers.broken:
                time.sleep(0.002)
            reviewers.server.kill()
            reviewers.server = Server(folder, words)
        for client in clients:
            client.join()
        reviewers.server.alive()
    finally:
        reviewers.server.kill()
    if reviewers.broken:
        raise BrokenPromiseError("; ".join(reviewers.broken))
    if len(reviewers.acknowledged) != CLIENTS * answers:
        raise BrokenPromiseError(f"{len(reviewers.acknowledged)} answers were acknowledged")
    _check(reviewers.acknowledged, folder, words, out)
    return "all there once"


def _check(
    acknowledged: list[tuple[str, str, str, str]], folder: Path, words: list[str | Path], out: Path
) -> None:
    """Every acknowledged answer is in the journal once, and the table has the last answer to each question."""
    with Server(folder, words):  # reads the journal, and writes the table
        lines = out.with_name("out.answers.jsonl").read_text(encoding="utf-8").splitlines()
        with out.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    # the table is in another folder than the photos, so it names them by their whole path
    cells = {(Path(row["file_name"]).name, name): row[name] for row in rows for name in COLOURS}
    records = [json.loads(line) for line in lines]
    journal = Counter((each["who"], each["file_name"], each["label"], each["answer"]) for each in records)
    for answer in acknowledged:
        if journal[answer] != 1:
            raise BrokenPromiseError(f"{journal[answer]} times in the journal: {answer}")
    if journal.total() != len(acknowledged):
        raise BrokenPromiseError("an answer in the journal that nobody gave")
    last = {(each["file_name"], each["label"]): CODES[each["answer"]] for each in records}
    for place, code in last.items():
        if cells[place] != code:
            raise BrokenPromiseError(f"{place} is {cells[place]!r} in the table, not {code!r}")


def _hostile(folder: Path, case: int) -> str:
    """Invented people lease what they can, before and while one honest person answers everything."""
    chance = random.Random(case)
    table = small_run() / "data" / "labels.csv"
    with Server(folder, _words(table, folder / "out.csv")) as server:
        for number in range(HOSTILE):
            _lease(server, f"hostile {number}", chance)
        answered = 0
        while True:
            reply = server.tell("/api/review/next", who="ann", count=1)
            if not reply["next"]:
                break
            _lease(server, f"late {answered}", chance)
            server.tell("/api/review/answer", who="ann", question=reply["next"][0]["id"], answer="yes")
            answered += 1
        left = reply["progress"]["open"]
        server.alive()
    if left or not answered:
        raise BrokenPromiseError(f"after {answered} answers {left} questions are open, but nobody is asked")
    return "asked everything"


def _lease(server: Server, who: str, chance: random.Random) -> None:
    category = chance.choice([None, *COLOURS])
    order = chance.choice(["likely", "doubtful"]) if category else None
    server.tell("/api/review/next", who=who, count=50, category=category, order=order, ahead=50)


KINDS = [
    Kind(
        f"review: {CLIENTS} clients × 500 answers with 20 SIGKILLs, in four cases and a short one",
        "Every acknowledged answer is in the journal once, and in the table.",
        len(ROUNDS),
        1,
        _killed,
    ),
    Kind(
        f"review: {HOSTILE} hostile reviewers",
        "An honest reviewer is asked every open question.",
        5,
        1,
        _hostile,
    ),
]
