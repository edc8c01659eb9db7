"""The first cases of each kind of fault; ``make faults`` runs all."""

import pytest

from tests.faults.bench import kinds


@pytest.mark.parametrize(
    ("kind", "seed"),
    [pytest.param(kind, seed, id=f"{kind.name} {seed}") for kind in kinds() for seed in range(kind.short)],
)
def test_promise_holds(kind, seed, tmp_path):
    assert kind.run(tmp_path, seed)
