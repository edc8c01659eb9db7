"""Slurm jobs by submitit's own executor for one computer, since there is no Slurm here."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sarb.jobs.slurm
from sarb.errors import SarbError
from sarb.files import write_json
from sarb.jobs.engines import Engine, Work
from sarb.jobs.place import JOBS, marked
from sarb.jobs.pool import run_grid
from sarb.jobs.slurm import TIME, SlurmRunner, read_options
from tests.jobs.echo import CALL
from tests.waiting import wait_until

pytest.importorskip("submitit", reason="needs the extra [slurm]: pip install 'sarb[slurm]'")
HERE = Engine("slurm", slurm=("cluster=local",))


def run(tasks, folder):
    answers = {}
    with HERE.open(Work(CALL, 1, 2, folder, folder / "log.txt")) as start:
        named = [(str(number), task) for number, task in enumerate(tasks)]
        run_grid(named, start, lambda number, answer: answers.update({number: answer}) or "", jobs=2)
    return [answers[number] for number in range(len(tasks))]


def test_keys_of_slurm():
    given = ["partition=gpu", "time=90", "memory=32", "gpus=1", "account=vision"]
    assert read_options(given) == (
        {
            "slurm_partition": "gpu",
            "timeout_min": 90,
            "mem_gb": 32,
            "gpus_per_node": 1,
            "slurm_account": "vision",
            "cluster": "slurm",
        },
        [],
    )
    assert read_options([])[0] == {"timeout_min": TIME, "cluster": "slurm"}


def test_all_mistakes_are_named_at_once():
    _, problems = read_options(["partitoin=gpu", "time=2h", "gpus=0", "memory", "cluster=slrum"])
    said = "\n".join(problems)
    assert "Did you mean 'partition'?" in said and "Did you mean 'slurm'?" in said
    assert "--slurm time=2h: time must be a whole number of minutes" in said
    assert "--slurm gpus=0" in said and "--slurm memory: expected KEY=VALUE" in said and len(problems) == 5


def test_every_key_is_known_to_submitit(tmp_path):
    import submitit

    texts = [f"{key}={7 if key in sarb.jobs.slurm.NUMBERS else 'x'}" for key in sarb.jobs.slurm.KEYS]
    options = {key: value for key, value in read_options(texts)[0].items() if key != "cluster"}
    executor = submitit.AutoExecutor(tmp_path, cluster="local")
    executor.update_parameters(**options)  # it knows Slurm's names, too, and refuses others
    with pytest.raises(NameError):
        executor.update_parameters(slurm_partitoin="x")


def test_without_slurm_it_says_so(tmp_path):
    with (
        pytest.raises(SarbError, match=r"srun.*cluster=local"),
        Engine("slurm").open(Work(CALL, 1, 1, tmp_path, tmp_path / "log.txt")),
    ):
        pass


@pytest.mark.slow
def test_jobs_answer_and_leave_no_pickle(tmp_path, monkeypatch):
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))  # the job must find the tests
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "out"
    found = [answer["line"] for answer in run([{"say": number} for number in range(3)], out)]
    assert [line["said"] for line in found] == [0, 1, 2]
    assert len({line["process"] for line in found}) == 3 and {line["folder"] for line in found} == {
        str(tmp_path)
    }
    assert {(line["threads"], line["variable"]) for line in found} == {(1, "1")}
    assert not (out / JOBS).exists() and not [*tmp_path.rglob("*.pkl")]


@pytest.mark.slow
def test_a_job_that_is_killed_is_submitted_again_and_what_it_said_is_kept(tmp_path):
    (answer,) = run([{"die": str(tmp_path / "died"), "say": 5}], tmp_path)
    assert answer["line"]["said"] == 5 and (tmp_path / "died").exists()
    assert (tmp_path / "log.txt").stat().st_size


def test_what_is_pickled_is_a_command_line(tmp_path, monkeypatch):
    import submitit

    monkeypatch.setattr(
        submitit.AutoExecutor, "submit", lambda _, function: (_ for _ in ()).throw(SubmittedError(function))
    )
    with (
        HERE.open(Work(CALL, 1, 1, tmp_path, tmp_path / "log.txt")) as start,
        pytest.raises(SubmittedError) as caught,
    ):
        start().run({"say": "text"})
    (function,) = caught.value.args
    assert type(function).__module__.startswith("submitit.")
    assert [type(word) for word in function.command] == [str] * 4
    assert function.command[:3] == [sys.executable, "-m", "sarb.jobs.once"]


class SubmittedError(Exception):
    pass


class Silent:
    """A job whose node sees nothing: it ends, and leaves neither answer nor log."""

    job_id, state = "7", "FAILED"

    def __init__(self, folder):
        import submitit

        self.paths = submitit.core.utils.JobPaths(folder, "7")

    def done(self):
        return True


def test_a_job_without_answer_or_log_asks_whether_its_node_sees_the_folder(tmp_path):
    with marked(tmp_path) as place:
        work = Work(CALL, 1, 1, tmp_path, tmp_path / "log.txt")
        runner = SlurmRunner(lambda _: Silent(tmp_path / JOBS), work, place)
        lost = runner.run({})
    assert lost["died"] and f"can its node see {tmp_path}? A shared file system is needed" in lost["error"]


def test_a_job_whose_folder_is_another_one_says_so(tmp_path):
    with marked(tmp_path) as place:
        strange = dataclasses.replace(place, text="another folder of the same name").as_dict()
        given = {"call": CALL, "threads": 1, "place": strange, "task": {}, "answer": str(tmp_path / "a.json")}
        write_json(tmp_path / "task.json", given)
        subprocess.run([sys.executable, "-m", "sarb.jobs.once", tmp_path / "task.json"], check=True)
    assert f"cannot see the folder {tmp_path} of" in (tmp_path / "a.json").read_text(encoding="utf-8")


def test_a_job_that_nobody_waits_for_ends(tmp_path):
    with marked(tmp_path) as place:
        file = tmp_path / "task.json"
        task = {"begun": str(tmp_path / "begun")}
        given = {"call": "tests.jobs.echo:wait", "threads": 1, "place": place.as_dict(), "task": task}
        write_json(file, {**given, "answer": str(tmp_path / "a.json")})
        job = subprocess.Popen([sys.executable, "-m", "sarb.jobs.once", file])
        try:
            wait_until((tmp_path / "begun").exists, "the job works")
            file.unlink()
            wait_until(lambda: job.poll() is not None, "the job ends without its file")
        finally:
            job.kill()
            job.wait()
    assert job.returncode != -9 and not (tmp_path / "a.json").exists()
