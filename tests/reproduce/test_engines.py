"""The same grid on Ray and through submitit as one process after another on this computer, also with killed workers."""

import os
import signal
import threading

import psutil
import pytest

from sarb.jobs.engines import Engine
from sarb.reproduce import QUICK, Plan, reproduce
from tests.documentation.tools import coarse_pictures
from tests.reproduce.test_reproduce import lines

pytestmark = pytest.mark.slow
ENGINES = {"ray": Engine("ray"), "submitit": Engine("slurm", slurm=("cluster=local",))}
NEEDS = {"ray": "ray", "submitit": "submitit"}
#: enough epochs that a worker is in the middle of a cell when it is killed
EPOCHS = 12


@pytest.fixture(scope="module")
def grid(squares):
    def run(out, engine=None):
        facts = {"source": str(squares / "labels.csv"), "data_options": {"encoding": "binary"}, "valid": 0.2}
        plan = Plan(recipe=QUICK["recipe"], out=str(out), given={"epochs": EPOCHS}, **facts)
        rows = ["SSGRL", "Ours"]
        with pytest.MonkeyPatch.context() as patch:
            coarse_pictures(patch)
            patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
            done = reproduce(
                "comparison",
                plan,
                rows=rows,
                shares=(0.5, 0.9),
                full=False,
                jobs=2,
                progress=False,
                engine=engine or Engine(),
            )
        assert done.failed == []
        return lines(out)

    return run


@pytest.fixture(scope="module")
def here(grid, tmp_path_factory):
    return grid(tmp_path_factory.mktemp("engines") / "here")


class Killer(threading.Thread):
    """Kills the first worker below this process that has begun to train a cell in ``out``."""

    def __init__(self, out):
        super().__init__(daemon=True)
        self.out, self.killed, self.over = out, [], threading.Event()

    def run(self):
        while not self.over.wait(0.02) and not self.killed:
            if not [*self.out.glob("runs/*/log.csv")]:
                continue  # no epoch has ended
            for process in psutil.Process().children(recursive=True):
                try:
                    words = " ".join(process.cmdline())
                except psutil.Error:
                    continue
                if "sarb.jobs.worker" in words or "sarb.jobs.once" in words:
                    os.kill(process.pid, signal.SIGKILL)
                    self.killed.append(process.pid)
                    break


@pytest.mark.parametrize("name", ENGINES)
def test_another_engine_gives_the_same_results_though_a_worker_is_killed(name, grid, here, tmp_path):
    pytest.importorskip(NEEDS[name])
    out = tmp_path / "there"
    killer = Killer(out)
    killer.start()
    try:
        found = grid(out, ENGINES[name])
    finally:
        killer.over.set()
        killer.join()
    assert killer.killed, "a worker was killed in the middle"
    assert found == here
    assert not (out / ".jobs").exists()
