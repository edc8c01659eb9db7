"""The capacity model: its fit, its parts, and the CSVs that are committed."""

import importlib

import numpy as np
import pytest
from benchmarks.capacity_examples import Load, Machine
from benchmarks.capacity_model import TERMS, Part, Sizes
from benchmarks.capacity_parts import PARTS
from benchmarks.fits import read_csv

from benchmarks import capacity, capacity_examples, capacity_model, capacity_tables

#: sizes at which a part runs in a moment, and what it measures there
TINY = {
    "read": (Sizes(2, 0, 64), "seconds"),
    "backbone": (Sizes(0, 0, 64, 1), "seconds"),
    "first batch": (Sizes(0, 0, 64, 1), "seconds"),
    "predict": (Sizes(2, 3, 64, 1), "seconds"),
    "step": (Sizes(0, 3, 64, 2), "flop"),
    "fit": (Sizes(80, 2), "memory"),
    "evaluate": (Sizes(50, 3), "seconds"),
    "complete": (Sizes(200, 3), "seconds"),
    "all-reduce": (Sizes(10), "seconds"),
    "all-gather": (Sizes(10), "seconds"),
    "two processes": (Sizes(0, 3, 64, 1), "seconds"),
    "parameters ssgrl": (Sizes(0, 3), "count"),
    "parameters pooled": (Sizes(0, 3), "count"),
    "parameters pairs": (Sizes(0, 3), "count"),
    "resnet101": (Sizes(0, 0, 64, 1), "flop"),
    "lite0": (Sizes(0, 0, 64, 1), "flop"),
    "cache": (Sizes(2, 0, 64), "bytes"),
}


def made_up(held="no", factor=1.0):
    """Points of a part whose time is 2 + 3 N + 0.5 N C."""
    return [
        {
            "part": "made up",
            **{name: str(value) for name, value in at._asdict().items()},
            "held": held,
            "seconds": str(factor * (2 + 3 * at.N + 0.5 * at.N * at.C)),
        }
        for at in (Sizes(1, 1), Sizes(10, 1), Sizes(10, 50), Sizes(300, 7))
    ]


MADE_UP = {"made up": Part("made up", dict, {"seconds": ("1", "N", "C", "N C")})}


def test_the_fit_gives_the_coefficients_back():
    model = capacity_model.fit(MADE_UP, made_up())
    assert model["made up", "seconds"] == pytest.approx({"1": 2, "N": 3, "C": 0, "N C": 0.5}, abs=1e-9)


def test_the_fit_ignores_points_that_are_held_out():
    model = capacity_model.fit(MADE_UP, [*made_up(), *made_up("yes", 100.0)])
    assert model["made up", "seconds"]["N"] == pytest.approx(3)


def test_a_peak_is_the_largest_of_its_terms():
    sizes = (Sizes(10, 1), Sizes(10, 500), Sizes(900, 2))
    points = [
        {
            "part": "peak",
            **{k: str(v) for k, v in at._asdict().items()},
            "held": "no",
            "memory": str(max(40 * at.N, 2 * at.N * at.C)),
        }
        for at in sizes
    ]
    parts = {"peak": Part("peak", dict, {"memory": ("N", "N C")}, largest=frozenset({"memory"}))}
    model = capacity_model.fit(parts, points)
    assert model["peak", "memory"] == pytest.approx({"N": 40, "N C": 2})
    assert capacity_model.predictor(parts, model)("peak", "memory", Sizes(3, 100)) == pytest.approx(600)


def test_the_check_compares_held_out_points_only():
    model = capacity_model.fit(MADE_UP, made_up())
    checked = capacity_model.check(MADE_UP, model, [*made_up(), *made_up("yes", 1.25)])
    assert [float(row["error"]) for row in checked] == pytest.approx([-0.2] * 4)


def test_a_part_put_together_asks_the_others():
    parts = {
        **MADE_UP,
        "twice": Part("twice", dict, together=lambda predict, at: 2 * predict("made up", "seconds", at)),
    }
    predict = capacity_model.predictor(parts, {("made up", "seconds"): {"N": 3.0}})
    assert predict("twice", "seconds", Sizes(5)) == 30


@pytest.mark.parametrize(("size", "side"), [(96, 3), (224, 7), (256, 4), (448, 7), (320, 5)])
def test_the_grid_is_that_of_ssgrl(size, side):
    assert Sizes(S=size).side == side


def test_every_part_has_tiny_sizes_and_no_point_is_fitted_and_held_out():
    assert set(TINY) == set(PARTS)
    for part in PARTS.values():
        assert part.held and not set(part.held) & set(part.fitted)
        assert bool(part.terms) == bool(part.fitted) == (part.together is None)
        assert {term for terms in part.terms.values() for term in terms} <= set(TERMS)


@pytest.fixture(scope="module")
def loaded():
    """Load once what every fork would load again."""
    for module in (
        "benchmarks.cases.head",
        "torch.distributed",
        "torch.utils.flop_counter",
        "sarb.inference.prediction",
    ):
        importlib.import_module(module)


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_every_part_runs_at_a_tiny_size(name, monkeypatch, loaded):
    from benchmarks import capacity_work

    monkeypatch.setattr(capacity_work, "ENOUGH", 0.0)
    at, quantity = TINY[name]
    assert capacity.alone(name, at)[quantity] > 0


def test_counts_are_those_of_the_objects():
    from sarb.networks import Pooled, create_backbone

    network = Pooled(create_backbone("resnet101", weights=None), 3)
    count = sum(value.numel() for value in network.classifier.parameters())
    assert capacity.alone("parameters pooled", Sizes(0, 3)) == {"count": count}


def test_the_better_round_counts_and_the_slower_one_is_told():
    first = capacity.row_of("read", False, Sizes(1), {"seconds": 2.0, "memory": 7.0}, "first")
    again = capacity.row_of("read", False, Sizes(1), {"seconds": 1.5, "memory": 8.0}, "again")
    for both in (capacity.merged(first, again), capacity.merged(again, first)):
        assert (both["seconds"], both["memory"], both["slowest"], both["rounds"]) == ("1.5", "8", "2", "2")
        assert both["command"] == "again"


def test_measuring_goes_on_where_it_stopped(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(
        capacity, "alone", lambda name, at: calls.append((name, at)) or {"seconds": 1.0, "count": 2.0}
    )
    file = tmp_path / "points.csv"
    rows = capacity.measure(file, ["all-reduce"], False, "c")
    part = PARTS["all-reduce"]
    assert calls == [("all-reduce", at) for at in (*part.fitted, *part.held)] and len(rows) == len(calls)
    assert [row["held"] for row in rows] == ["no"] * len(part.fitted) + ["yes"] * len(part.held)
    assert capacity.measure(file, ["all-reduce"], False, "c") == rows and len(calls) == len(rows)
    assert {row["rounds"] for row in capacity.measure(file, ["all-reduce"], True, "c")} == {"2"}


def test_what_does_not_fit_saturates_before_what_takes_long():
    hours = [Load("GPUs", (1, 5)), Load("reading", (2, 2))]
    assert capacity_examples.saturates(hours) == "GPUs"
    assert capacity_examples.saturates([*hours, Load("labels", size=9, room=10)]) == "GPUs"
    full = [Load("labels", size=11, room=10), Load("prototypes", size=30, room=10)]
    assert capacity_examples.saturates([*hours, *full]) == "memory: prototypes"


def test_twice_the_devices_halve_the_step_but_not_the_gradients():
    predict = capacity_model.predictor(
        PARTS, capacity_model.read_model(capacity_tables.RESULTS / "model.csv")
    )
    small, large = (
        {
            load.resource: load
            for load in capacity_examples.train(predict, "ssgrl", 1e5, 80, 0.1, Machine("", 16, n))
        }
        for n in (4, 8)
    )
    assert large["GPUs"].hours == pytest.approx(np.array(small["GPUs"].hours) / 2)
    # half of the steps, each with 2 · 7/8 instead of 2 · 3/4 of the parameters
    assert large["gradients"].hours == pytest.approx(
        np.array(small["gradients"].hours) * (7 / 8) / (3 / 4) / 2
    )


def test_the_committed_files_agree(tmp_path):
    points = read_csv(capacity_tables.RESULTS / "points.csv")
    (tmp_path / "points.csv").write_text((capacity_tables.RESULTS / "points.csv").read_text())
    capacity.main(["--refit", "--out", str(tmp_path)])
    planned = {
        (name, at, held)
        for name, part in PARTS.items()
        for held, sizes in (("no", part.fitted), ("yes", part.held))
        for at in sizes
    }
    assert {(row["part"], capacity_model.sizes_of(row), row["held"]) for row in points} == planned
    for name, key in (("model.csv", "coefficient"), ("check.csv", "predicted"), ("examples.csv", "")):
        new, committed = (read_csv(folder / name) for folder in (tmp_path, capacity_tables.RESULTS))
        assert [
            {k: v for k, v in row.items() if k not in ("coefficient", "predicted", "error")} for row in new
        ] == [
            {k: v for k, v in row.items() if k not in ("coefficient", "predicted", "error")}
            for row in committed
        ]
        if key:
            assert [float(row[key]) for row in new] == pytest.approx(
                [float(row[key]) for row in committed], rel=1e-3
            )


def test_numbers_have_three_digits_and_a_prefix():
    texts = [
        capacity_tables.scaled(*pair)
        for pair in ((0.00123, "s"), (1e12, "B"), (999.9, ""), (0, "s"), (1.5, "s"))
    ]
    assert texts == ["1.23 ms", "1 TB", "1 k", "0 ns", "1.5 s"]
