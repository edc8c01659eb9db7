import os
import subprocess
import sys

import pytest

from sarb.bulk import processes
from sarb.bulk.job import Job
from sarb.bulk.processes import TRIES, Process, in_processes
from sarb.errors import SarbError

JOB = Job("predict", "no/run", "no/folder", "identity", "model", {}, 32, 1)


def dying(monkeypatch, tmp_path):
    """Let every worker end before it answers; return the file with a line per start."""
    log = tmp_path / "starts"
    program = f"open({str(log)!r}, 'a').write('x\\n'); input(); input(); raise SystemExit(7)"
    start = subprocess.Popen
    monkeypatch.setattr(
        processes.subprocess, "Popen", lambda words, **how: start([sys.executable, "-c", program], **how)
    )
    return log


def test_a_part_that_ends_every_worker_stops_the_work(monkeypatch, tmp_path):
    log = dying(monkeypatch, tmp_path)
    with pytest.raises(
        SarbError, match="3 worker processes were lost with part 5, the last one with exit code 7"
    ):
        Process(JOB).do(5)
    assert log.read_text().count("x") == TRIES


def test_the_error_of_a_thread_is_raised(monkeypatch, tmp_path):
    dying(monkeypatch, tmp_path)
    with pytest.raises(SarbError, match="worker processes were lost"):
        list(in_processes(JOB, range(4), 2))


def test_a_worker_answers_with_the_error_of_its_chunk():
    process = Process(JOB)
    part = process.do(3)
    process.close()
    assert part.number == 3 and "no/run" in part.error


def test_workers_end_when_the_work_is_left(monkeypatch, tmp_path):
    """In the middle of a chunk, and also when a thread waits for room among the answers."""
    program = (
        "import sys, time\n"
        "input()\n"
        "for line in sys.stdin:\n"
        "    if int(line) > 5: time.sleep(1000)\n"
        """    print('{"number": ' + line.strip() + ', "reasons": []}', flush=True)\n"""
    )
    start, started = subprocess.Popen, []

    def popen(words, **how):
        started.append(start([sys.executable, "-c", program], **how))
        return started[-1]

    monkeypatch.setattr(processes.subprocess, "Popen", popen)
    parts = in_processes(JOB, range(100), 2)
    assert next(parts).number in (0, 1)
    parts.close()
    assert len(started) == 2 and all(process.poll() is not None for process in started)


def test_workers_are_out_of_the_reach_of_ctrl_c():
    process = Process(JOB)
    try:
        started = process._running()
        assert os.getpgid(started.pid) == started.pid != os.getpgrp()
    finally:
        process.close()


def test_a_worker_with_an_error_of_python_does_not_speak_of_memory(monkeypatch, tmp_path):
    start = subprocess.Popen
    program = "input(); input(); raise SystemExit(1)"
    monkeypatch.setattr(
        processes.subprocess, "Popen", lambda words, **how: start([sys.executable, "-c", program], **how)
    )
    with pytest.raises(SarbError, match=r"exit code 1: its error is above$"):
        Process(JOB).do(5)
