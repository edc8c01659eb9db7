import importlib.util
import json
import socket

import pytest

from sarb import bulk
from sarb.bulk import ray_engine
from sarb.bulk.job import Job
from sarb.bulk.ray_engine import connect, need_ray, on_ray
from sarb.errors import ConfigError, SarbError
from tests.bulk.killing import kill_a_worker
from tests.bulk.same import assert_same


def test_without_ray_one_line_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(SarbError, match=r"^engine ray needs Ray: pip install 'sarb\[ray\]'$"):
        need_ray()


class NoCluster:
    def is_initialized(self):
        return False


def test_an_address_where_nothing_listens_is_said_at_once():
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    for place in (f"127.0.0.1:{free}", f"ray://127.0.0.1:{free}"):
        with pytest.raises(SarbError, match=f"^{place}: no Ray cluster can be joined there .*refused"):
            connect(NoCluster(), place)


def test_ray_is_tested_here():
    """The tests below would have nothing to say without it."""
    assert importlib.util.find_spec("ray") is not None


def test_torchrun_and_ray_are_two_ways(monkeypatch, run, squares, tmp_path):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="without torchrun"):
        bulk.predict(run, squares, tmp_path / "out", engine="ray")


@pytest.mark.slow
def test_ray_writes_the_same_files_though_a_worker_is_killed(cluster, run, squares, tmp_path):
    killed = []

    def kill(part):
        if not killed:
            killed.extend([1] * kill_a_worker())

    done = bulk.predict(run, squares, tmp_path / "ray", engine="ray", workers=2, part_size=4, watch=kill)
    bulk.predict(run, squares, tmp_path / "local", workers=1, part_size=4)
    assert killed and done.images == done.rows == 48
    assert_same(tmp_path / "ray", tmp_path / "local")


@pytest.mark.slow
def test_ray_goes_on_where_another_engine_stopped(cluster, monkeypatch, run, squares, tmp_path):
    out = tmp_path / "out"
    monkeypatch.setattr(ray_engine, "ROUND", 3)  # several rounds

    def stop(part):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bulk.complete(run, None, out, workers=1, part_size=8, watch=stop)
    assert [path.name for path in out.glob("part-*")] == ["part-000000.parquet"]
    done = bulk.complete(run, None, out, engine="ray", workers=2, part_size=8)
    assert (done.parts, done.computed) == (6, 5)
    bulk.complete(run, None, tmp_path / "alone", workers=1, part_size=8)
    assert_same(out, tmp_path / "alone")
    assert json.loads((out / "_manifest.json").read_text())["images"] == 48


@pytest.mark.slow
def test_an_error_of_a_worker_is_ours(cluster, run, squares, tmp_path):
    bulk.predict(run, squares, tmp_path / "out", workers=1, part_size=44)
    job = Job("predict", str(run), str(tmp_path / "out"), "other", "not the model", {}, 32, 1)
    parts = list(on_ray(job, [0], 1, None))
    assert [part.number for part in parts] == [0] and "is not the model that" in parts[0].error


@pytest.mark.slow
def test_a_command_outside_the_cluster_gets_the_same(cluster, monkeypatch, run, squares, tmp_path):
    """As with ray://, where Ray Data runs inside the cluster; relative names are those of the command."""
    monkeypatch.chdir(squares)
    monkeypatch.setattr(cluster.util.client.ray, "is_connected", lambda: True)
    monkeypatch.setattr(ray_engine, "ROUND", 2)
    done = bulk.predict(
        run, ["00.jpg", "01.jpg", "02.jpg"], tmp_path / "a", engine="ray", workers=1, part_size=1
    )
    assert (done.images, done.rows, done.computed) == (3, 3, 3)
    bulk.predict(run, ["00.jpg", "01.jpg", "02.jpg"], tmp_path / "b", workers=1, part_size=1)
    assert_same(tmp_path / "a", tmp_path / "b")
