"""A Ray cluster on this computer: answers, deaths, and folders that a node cannot see."""

import dataclasses
import os

import pytest

import sarb.jobs.ray_jobs
from sarb.errors import ConfigError
from sarb.jobs.engines import Engine, Work
from sarb.jobs.place import JOBS
from sarb.jobs.pool import run_grid
from sarb.jobs.ray_jobs import RayRunner, share_of_gpus
from tests.jobs.echo import CALL

ray = pytest.importorskip("ray", reason="needs the extra [ray]: pip install 'sarb[ray]'")


def run(tasks, folder, jobs=2, threads=1):
    answers = {}
    with Engine("ray").open(Work(CALL, threads, jobs, folder, folder / "log.txt")) as start:
        named = [(str(number), task) for number, task in enumerate(tasks)]
        run_grid(named, start, lambda number, answer: answers.update({number: answer}) or "", jobs=jobs)
    return [answers[number] for number in range(len(tasks))]


@pytest.mark.slow
def test_processes_of_actors_answer(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = [answer["line"] for answer in run([{"say": number} for number in range(4)], tmp_path / "out")]
    assert [line["said"] for line in found] == [0, 1, 2, 3]
    assert {line["folder"] for line in found} == {str(tmp_path)} and os.getpid() not in {
        line["process"] for line in found
    }
    assert {(line["threads"], line["variable"]) for line in found} == {(1, "1")}
    assert not (tmp_path / "out" / JOBS).exists() and ray.is_initialized(), "a cluster of yours is left alone"


@pytest.mark.slow
def test_a_process_that_dies_is_tried_again_but_not_for_ever(cluster, tmp_path):
    dead, failed = run([{"die": str(tmp_path / "died"), "say": 1}, {"fail": "no luck"}], tmp_path)
    assert dead["line"]["said"] == 1 and (tmp_path / "died").exists()
    assert "ended with code" in failed["error"] and "given up" in failed["error"]


@pytest.mark.slow
def test_an_actor_that_dies_is_replaced(cluster, tmp_path):
    with Engine("ray").open(Work(CALL, 1, 1, tmp_path, tmp_path / "log.txt")) as start:
        runner = start()
        assert runner.run({"say": 1})["line"]["said"] == 1
        ray.kill(runner.actor)
        lost = runner.run({"say": 2})
        assert lost["died"] and "the Ray actor ended (" in lost["error"]
        assert runner.run({"say": 3})["line"]["said"] == 3
        runner.stop()


@pytest.mark.slow
def test_a_folder_that_a_node_cannot_see_is_named(cluster, tmp_path):
    with Engine("ray").open(Work(CALL, 1, 1, tmp_path, tmp_path / "log.txt")) as start:
        whole = start()
        hidden = {"mark": "/nowhere/grid/.jobs/here.txt"}, {"current": "/nowhere/at/all"}
        said = []
        for change in hidden:
            runner = RayRunner(whole.work, dataclasses.replace(whole.place, **change), 0)
            said.append(runner.run({}))
            runner.stop()
    assert "cannot see the folder /nowhere/grid of" in said[0]["error"]
    assert "cannot see the current folder /nowhere/at/all of" in said[1]["error"]
    assert all("file system that all of them share" in answer["error"] for answer in said)
    assert not any(answer.get("died") for answer in said), "it would not be there at the next try either"


@pytest.mark.slow
def test_more_jobs_than_processors_take_turns(cluster, tmp_path):
    found = run([{"say": number} for number in range(4)], tmp_path, jobs=4)
    assert [answer["line"]["said"] for answer in found] == [0, 1, 2, 3]


@pytest.mark.slow
def test_more_threads_than_the_cluster_has_are_refused(cluster, tmp_path):
    with pytest.raises(ConfigError, match="has 2 processors, but each run is to have 64 threads"):
        run([{}], tmp_path, threads=64)


def test_a_run_must_fit_on_one_node(monkeypatch, tmp_path):
    nodes = [{"Alive": alive, "Resources": {"CPU": size}} for alive, size in ((1, 2.0), (1, 4.0), (0, 64.0))]
    monkeypatch.setattr(ray, "nodes", lambda: nodes)
    sarb.jobs.ray_jobs._check_room(Work(CALL, 4, 1, tmp_path, tmp_path / "log.txt"))
    with pytest.raises(ConfigError, match="the largest node of the Ray cluster has 4 processors"):
        sarb.jobs.ray_jobs._check_room(Work(CALL, 5, 1, tmp_path, tmp_path / "log.txt"))


def test_gpus_are_shared_out():
    assert [share_of_gpus(*case) for case in ((0, 3), (4, 3), (1, 2), (2, 3))] == [0, 1, 0.5, 0.5]
