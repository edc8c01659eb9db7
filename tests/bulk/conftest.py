"""A fitted run on the coloured squares."""

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
