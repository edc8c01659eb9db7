"""A fitted run on the coloured squares, and one Ray cluster for all tests of this folder."""

import os

import pytest

from sarb.workflows.training import train_session

GIVEN = {
    "backbone": "tiny",
    "image_size": 64,
    "epochs": 1,
    "batch_size": 8,
    "network": "pooled",
    "method": "partial_bce",
}


@pytest.fixture(scope="session")
def run(squares, tmp_path_factory):
    out = tmp_path_factory.mktemp("bulk") / "run"
    train_session(
        source=str(squares / "labels.csv"),
        data_options={"encoding": "binary"},
        known=0.6,
        out=out,
        given=GIVEN,
        quiet=True,
        page=False,
    )
    return out


@pytest.fixture(scope="session")
def cluster():
    """Two processors, little memory; started once, since that takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_BACKEND_LOG_LEVEL", "fatal")
        import ray

        # the workers must find this package and the tests, wherever the tests were started
        path = os.pathsep.join(entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry)
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=100 << 20,
            log_to_driver=False,
            configure_logging=False,
            runtime_env={"env_vars": {"PYTHONPATH": path}} if path else None,
        )
        yield ray
        ray.shutdown()
