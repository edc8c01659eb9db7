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
