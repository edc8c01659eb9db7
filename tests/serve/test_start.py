"""``sarb serve`` as a process: address, port, signals, and an end without warning."""

import csv
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

import sarb
from sarb.errors import SarbError
from sarb.serve.listening import listen
from tests.documentation.tools import run as command
from tests.waiting import PATIENCE


class Server:
    """``sarb serve`` in a process of its own."""

    def __init__(self, *words):
        line = [sys.executable, "-m", "sarb.cli", "serve", *map(str, words), "--port", "0"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, env=environment)
        self.said = []
        for text in self.process.stderr:
            self.said.append(text)
            if found := re.search(r" at (http://[^ ]+)/ ", text):
                self.address = found[1]
                return
        raise AssertionError("".join(self.said))

    def post(self, path, **body):
        request = urllib.request.Request(
            f"{self.address}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
            return json.load(reply)

    def answer(self, who, word):
        (question,) = self.post("/api/review/next", who=who, count=1)["next"]
        self.post("/api/review/answer", who=who, question=question["id"], answer=word)
        return question["file_name"], question["label"]

    def end(self, number):
        self.process.send_signal(number)
        self.said += self.process.stderr.readlines()
        return self.process.wait(PATIENCE)


def cells(path):
    with path.open(newline="", encoding="utf-8") as file:
        return {
            (row["file_name"], name): row[name]
            for row in csv.DictReader(file)
            for name in row
            if name != "file_name"
        }


def test_killed_without_warning_and_started_again(run, gaps):
    words = (run, "--labels", gaps / "labels.csv", "-o", "encoding=binary", "-o", "test=0")
    server = Server(*words)
    try:
        given = {
            server.answer("ann", word): code
            for word, code in (("yes", "1.0"), ("no", "0.0"))
            for _ in range(5)
        }
    finally:
        assert server.end(signal.SIGKILL) == -signal.SIGKILL
    assert answered(gaps) == given and len(given) == 10
    server = Server(*words)
    try:
        assert any("50 of 60 labels to ask" in line for line in server.said), server.said
        assert cells(gaps / "reviewed.csv") == {**cells(gaps / "labels.csv"), **answered(gaps)}
        server.answer("ann", "yes")
    finally:
        code = server.end(signal.SIGTERM)
    assert code == 143 and "every answer is saved" in server.said[-2]
    assert server.said[-1].startswith("next: sarb train --data ")
    assert len(answered(gaps)) == 11
    assert cells(gaps / "reviewed.csv") == {**cells(gaps / "labels.csv"), **answered(gaps)}
    sarb.load(gaps / "reviewed.csv", encoding="binary")


def answered(folder):
    """What the journal says, by a reading of its own."""
    lines = map(json.loads, (folder / "reviewed.answers.jsonl").read_text(encoding="utf-8").splitlines())
    return {(line["file_name"], line["label"]): {"yes": "1.0", "no": "0.0"}[line["answer"]] for line in lines}


def test_ctrl_c_and_no_review(run):
    server = Server(run)
    with urllib.request.urlopen(f"{server.address}/api/info", timeout=PATIENCE) as reply:
        assert json.load(reply)["review"] is False
    with pytest.raises(urllib.error.HTTPError, match="403"):
        request = urllib.request.Request(
            f"{server.address}/api/predict", b"", {"Origin": "http://evil.example"}
        )
        urllib.request.urlopen(request, timeout=PATIENCE)
    assert server.end(signal.SIGINT) == 130
    assert not any("Traceback" in line or "epoch" in line or "next:" in line for line in server.said)


def test_no_answers_no_next_command_and_no_file(run, gaps):
    server = Server(run, "--labels", gaps / "labels.csv", "-o", "encoding=binary")
    server.post("/api/review/next", who="ann")
    assert server.end(signal.SIGINT) == 130
    assert server.said[-1] == "sarb: stopped\n" and not (gaps / "reviewed.csv").exists()


def test_the_runs_own_data_are_asked_about(run, monkeypatch):
    from sarb.serve import start

    def all_known(recogniser, labels, options, out, **asked):
        raise SarbError(f"{labels} {options} {asked}")

    monkeypatch.setattr(start, "run_source", lambda run, source, options: ("own.csv", {"test": 0.3}, {}))
    monkeypatch.setattr(start, "open_desk", all_known)
    with pytest.raises(SarbError, match=r"own\.csv \{'test': 0\.3\} \{'ask': 'test', 'assist': True, "):
        start.serve(run, ask="test", assist=True, port=0)


def test_a_port_in_use():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            SarbError, match=rf"port {port} \(Address already in use\); choose another with --port"
        ):
            listen("127.0.0.1", port)


def test_a_host_that_is_none():
    with pytest.raises(SarbError, match=r"host 'no\.such\.host\.invalid'"):
        listen("no.such.host.invalid", 0)


def test_only_this_computer_by_default():
    with listen("127.0.0.1", 0) as made:
        assert made.getsockname()[0] == "127.0.0.1" and made.family == socket.AF_INET


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{folder}"], "not a run or model folder"),
        (["{folder}/none"], "no such run"),
        (["{folder}", "--out", "x.csv"], "add --labels"),
        (["{folder}", "-o", "encoding=binary"], "add --labels"),
        (["{folder}", "--assist"], "add --labels"),
        (["{folder}", "--ask", "test"], "not a run or model folder"),
        (["{folder}", "--port", "70000"], ""),
    ],
)
def test_one_clear_line(words, said, tmp_path, monkeypatch, capsys):
    line = ["sarb", "serve", *(word.format(folder=tmp_path) for word in words)]
    line += [] if "--port" in words else ["--port", "0"]
    assert command(line, monkeypatch) == 2
    assert said in capsys.readouterr().err


def test_without_its_packages(tmp_path, monkeypatch, capsys):
    import importlib.util

    right = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "uvicorn" else right(name))
    assert command(["sarb", "serve", str(tmp_path)], monkeypatch) == 2
    assert "sarb serve needs uvicorn; install them with: pip install 'sarb[serve]'" in capsys.readouterr().err


def test_another_host_needs_a_token(run, monkeypatch, capsys):
    from fastapi.testclient import TestClient

    from sarb.serve import start

    def look(app, listening):
        with TestClient(app, base_url="http://127.0.0.1:8000") as client:
            statuses.append(client.get("/api/info").status_code)
        return 0

    statuses = []
    monkeypatch.setattr(start, "_until_stopped", look)
    assert start.serve(run, host="0.0.0.0", port=0) == 0
    said = capsys.readouterr().err
    assert re.search(r"open http://[^ ]+/\?token=[\w-]{32} in a browser", said) and "--tls-key" in said
    for host in ("127.0.0.1", "127.0.0.2", "localhost"):
        assert start.serve(run, host=host, port=0) == 0
        assert "token" not in capsys.readouterr().err
    monkeypatch.setenv("SARB_TOKEN", "a-token-of-my-own")
    assert start.serve(run, host="127.0.0.1", port=0) == 0
    said = capsys.readouterr().err
    assert "?token=YOUR_TOKEN" in said and "a-token-of-my-own" not in said
    assert statuses == [401, 200, 200, 200, 401]
