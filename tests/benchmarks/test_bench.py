"""The benchmark's harness on toy cases, and its literal formulas against ours. No wall time is asserted."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.cases import contrastive, decouple, graph, head, loading, metrics, training
from benchmarks.harness import Case, Result, lazy, peak_memory, run
from benchmarks.products import record_products
from torch import Tensor, nn

from benchmarks import bench
from sarb.data.images import TrainTransform
from sarb.labels import LabelMatrix
from sarb.losses import contrastive as contrastive_loss
from sarb.metrics import average_precision
from sarb.networks import GatedGraph, SemanticDecoupling

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
both = pytest.mark.parametrize("dtype", TOLERANCE)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that moves only when it is told to."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


def worker(clock: list[float], takes: list[float], calls: list[str], name: str):
    def work() -> None:
        calls.append(name)
        clock[0] += takes.pop(0) if len(takes) > 1 else takes[0]

    return work


def test_parts_take_turns_and_ratios_are_medians_within_a_round(clock: list[float]) -> None:
    calls: list[str] = []
    case = Case(
        "toy",
        literal=worker(clock, [9, 10, 20, 30, 40, 50], calls, "literal"),
        ours=worker(clock, [9, 5, 5, 5, 5, 50], calls, "ours"),
        floor=worker(clock, [1], calls, "floor"),
        items=10,
        memory=False,
    )
    result = run(case)
    assert calls == ["literal", "ours", "floor"] * 6  # one warm-up
    assert result.rounds == 5
    assert (result.literal, result.ours, result.floor) == (30, 5, 1)
    assert result.ratio == 4  # of 2, 4, 6, 8, 1
    assert result.distance == 5
    assert result.per_second == 2


def test_a_slow_literal_formula_gets_three_rounds_and_says_so(clock: list[float]) -> None:
    case = Case(
        "toy", worker(clock, [21], [], ""), worker(clock, [1], [], ""), repeats=9, memory=False, note="why"
    )
    result = run(case)
    assert result.rounds == 3
    assert result.note == "why; 3 rounds only, the literal formula is slow"


def test_a_part_is_scaled_and_its_memory_not_compared(clock: list[float]) -> None:
    result = run(Case("toy", worker(clock, [2], [], ""), worker(clock, [1], [], ""), scale=100))
    assert (result.literal, result.ratio, result.memory_ratio) == (200, 200, None)
    assert "timed on a part, × 100" in result.note


def test_without_literal_or_floor(clock: list[float]) -> None:
    result = run(Case("toy", None, worker(clock, [1], [], ""), detail=lambda: "told later"))
    assert (result.literal, result.ratio, result.floor, result.distance) == (None, None, None, None)
    assert result.note == "told later"


def test_skipped_cases_do_not_run() -> None:
    def fails() -> None:
        raise AssertionError

    assert run(Case("toy", None, fails, skip="no data")).skipped == "no data"


def test_peak_memory_sees_what_is_freed_again() -> None:
    def work() -> None:
        np.ones(25_000_000)  # 200 MB

    measured = peak_memory(work)
    if measured is None:
        pytest.skip("no high-water mark here")
    assert 195e6 < measured < 230e6
    again = peak_memory(work)
    assert again is not None and 195e6 < again < 230e6
    small = peak_memory(lambda: None)
    assert small is not None and small < 5e6


def test_lazy_builds_once() -> None:
    made: list[int] = []
    get = lazy(lambda: made.append(1) or len(made))
    assert not made
    assert (get(), get(), len(made)) == (1, 1, 1)


def test_products_are_recorded_forward_and_backward() -> None:
    layer = nn.Linear(3, 4)
    x = torch.randn(5, 3, requires_grad=True)
    found = record_products(lambda: layer(x).sum().backward())
    shapes = [tuple(product().shape) for product in found]  # type: ignore[attr-defined]
    assert sorted(shapes) == [(4, 3), (5, 3), (5, 4)] or sorted(shapes) == [(3, 4), (5, 3), (5, 4)]
    convolution = nn.Conv2d(2, 3, 1)
    assert len(record_products(lambda: convolution(torch.randn(1, 2, 4, 4)).sum().backward())) == 2


def gradients(module: nn.Module, output: Tensor, *inputs: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(output.square().sum(), [*inputs, *module.parameters()]))


@both
def test_literal_decoupling_is_ours(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    sd = SemanticDecoupling(12, 7, 5).to(dtype)
    literal = decouple.LiteralDecoupling(sd).to(dtype)
    maps = torch.randn(2, 12, 3, 4, dtype=dtype, requires_grad=True)
    words = torch.randn(6, 7, dtype=dtype)
    for ours, theirs in zip(sd(maps, words), literal(maps, words), strict=True):
        torch.testing.assert_close(ours, theirs, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
    expected = gradients(sd, literal(maps, words)[0], maps)
    for ours, theirs in zip(gradients(sd, sd(maps, words)[0], maps), expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=10 * TOLERANCE[dtype], rtol=10 * TOLERANCE[dtype])


@both
def test_literal_graph_is_ours(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    ours = GatedGraph(8).to(dtype)
    states = torch.randn(3, 5, 8, dtype=dtype, requires_grad=True)
    literal = graph.LiteralGraph(ours)
    edges = graph.random_graph(5).to(dtype)
    torch.testing.assert_close(
        ours(states, edges), literal(states, edges), atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype]
    )
    expected = gradients(ours, literal(states, edges), states)
    for got, wanted in zip(gradients(ours, ours(states, edges), states), expected, strict=True):
        torch.testing.assert_close(got, wanted, atol=10 * TOLERANCE[dtype], rtol=10 * TOLERANCE[dtype])


@both
@pytest.mark.parametrize("known", [0.1, 0.6])
def test_literal_head_is_ours(known: float, dtype: torch.dtype) -> None:
    method, literal, batch = head.build_head(head.SMALL)
    method.contrastive_form = "paper"  # draws nothing, so the order of the other draws is the same
    literal.to(dtype)
    maps = batch.images.detach().to(dtype).requires_grad_()
    labels = head.partial_labels(*batch.labels.shape, known=known, present=0.3)
    batch = replace(batch, images=maps, labels=labels)
    found = []
    for module in (method, literal):
        torch.manual_seed(1)
        terms = module(batch)
        wanted = [parameter for parameter in method.parameters() if parameter.requires_grad]
        slopes = torch.autograd.grad(sum(terms.values()), [maps, *wanted], allow_unused=True)
        found.append((terms, slopes))
    (ours, our_slopes), (theirs, their_slopes) = found
    assert set(ours) == set(theirs) == {"cls", "cst", "ilrb", "plrb"}
    assert method.ilrb is not None and (known < 0.5 or method.ilrb.chosen.any())
    for name in ours:
        torch.testing.assert_close(ours[name], theirs[name], atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
    for got, expected in zip(our_slopes, their_slopes, strict=True):
        torch.testing.assert_close(got, expected, atol=10 * TOLERANCE[dtype], rtol=10 * TOLERANCE[dtype])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_literal_average_precision_is_ours(kind: type) -> None:
    scores, labels = metrics.random_scores(60, 6, kind)
    labels[::3, 1:] = 0
    labels[0] = 1  # at least one positive each
    literal = [metrics.literal_precision(scores[:, c].tolist(), labels[:, c].tolist()) for c in range(6)]
    ours = [average_precision(scores, labels, interpolated=interpolated) for interpolated in (False, True)]
    np.testing.assert_allclose(np.array(literal).T, ours, rtol=0, atol=1e-12)


@pytest.mark.parametrize("known", [1.0, 0.4])
def test_literal_graphs_are_ours(known: float) -> None:
    values = metrics.random_labels(800, 5, known)
    ours = LabelMatrix(values, list("abcde")).cooccurrence()
    np.testing.assert_allclose(metrics.literal_graph(values), ours, rtol=0, atol=1e-12)
    np.testing.assert_allclose(metrics.outer_graph(values), ours, rtol=0, atol=1e-12)
    assert 0 < ours[~np.eye(5, dtype=bool)].max() <= 1


@both
def test_literal_contrastive_losses_are_ours_where_nothing_is_cut(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    reps = torch.randn(5, 4, 6, dtype=dtype, requires_grad=True)
    labels = torch.tensor([[1, 1, 1, 0]] * 3 + [[-1, 1, 0, -1]] * 2)  # 16 pairs pull, 6 and 2 push
    (wanted,) = torch.autograd.grad(contrastive_loss(reps, labels), reps)
    for literal in (contrastive.loop, contrastive.listed):
        torch.testing.assert_close(
            literal(reps, labels),
            contrastive_loss(reps, labels),
            atol=TOLERANCE[dtype],
            rtol=TOLERANCE[dtype],
        )
        (found,) = torch.autograd.grad(literal(reps, labels), reps)
        torch.testing.assert_close(found, wanted, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


def test_a_training_step_moves_the_weights_and_leaves_no_gradient() -> None:
    step = training.Step("tiny", 32, head.Sizes(2, 4, 8, 8, 2))
    weight = step.method.network.classifier.join.weight
    before = weight.clone()
    for module in (step.method, step.literal):
        step(module)
    step.backbone_only()
    step.head_only()()
    assert not torch.equal(before, weight)
    assert all(parameter.grad is None for parameter in step.method.parameters())


def test_literal_loading_shows_the_same_picture() -> None:
    file = loading.Folder(1)
    picture = loading.decode(file.files[0])
    ours = TrainTransform(64)(picture, np.random.default_rng(3))
    theirs = loading.literal(file.files[0], 64, np.random.default_rng(3))
    assert theirs.shape == ours.shape == (3, 64, 64)
    assert abs(theirs - ours).mean() < 0.15  # of a standard deviation: one interpolation less


def test_every_module_has_cases_that_cost_nothing_to_list(capsys: pytest.CaptureFixture[str]) -> None:
    names = [case.name for case in bench.collect(quick=False)]
    assert len(names) == len(set(names))
    assert {"decouple", "graph", "head", "training", "inference", "loading", "startup"} <= {
        name.split(":")[0] for name in names
    }
    assert bench.main(["--list"]) == 0
    assert "resnet101 at 448, B=16 C=80 D=1024  (slow)" in capsys.readouterr().out


def test_choose() -> None:
    cases = [Case("one: a", None, list), Case("two: b", None, list, slow=True)]
    assert bench.choose(cases, [], False) == cases[:1]
    assert bench.choose(cases, [], True) == cases
    assert bench.choose(cases, ["TWO"], False) == cases[1:]
    with pytest.raises(SystemExit, match="'three'"):
        bench.choose(cases, ["three"], False)


def test_quick_run_writes_table_json_and_markdown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.machine.machine", lambda: MACHINE)
    out = tmp_path / "results.json"
    page = tmp_path / "RESULTS.md"
    chosen = ["decouple", "gated", "head:", "inference", "coco256", "64, B=2"]
    assert bench.main(["--quick", "--out", str(out), "--markdown", str(page), "--only", *chosen]) == 0
    stored = json.loads(out.read_text())
    measured = [result for result in stored["results"] if not result["skipped"]]
    assert all(result["ours"] > 0 and result["ratio"] > 0 and result["distance"] > 0 for result in measured)
    assert {"date", "commit", "command", "machine"} <= set(stored)
    lines = page.read_text().splitlines()
    assert sum(line.startswith("|") for line in lines) == 2 + len(stored["results"])
    assert len({line.count("|") for line in lines if line.startswith("|")}) == 1
    assert "skipped, give the folder with --coco256 DIR" in page.read_text()
    assert stored["results"][0]["name"] in capsys.readouterr().out


def test_a_failing_case_is_told_and_the_others_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> None:
        raise ValueError("broken")

    cases = [Case("bad: a", None, fails), Case("good: b", None, list)]
    monkeypatch.setattr(bench, "collect", lambda **_: cases)
    monkeypatch.setattr("benchmarks.machine.machine", lambda: MACHINE)
    assert bench.main(["--json"]) == 1
    bad, good = json.loads(capsys.readouterr().out)["results"]
    assert bad["skipped"] == "failed: ValueError: broken"
    assert good["ours"] >= 0 and not good["skipped"]


def test_cells() -> None:
    row = bench.cells(
        Result("x", literal=2.5, ours=0.0123, ratio=203.2, ours_memory=12_000_000, distance=1.234)
    )
    assert row == ("x", "2.50 s", "12.3 ms", "203×", "–", "12 MB", "–", "–", "1.23×", "–")


MACHINE = {
    "processor": "toy",
    "cores": 1,
    "threads": 1,
    "gpu": None,
    "gflops": {"1024³": 1.0},
    "load": 0.0,
    "copy_gigabytes_per_second": 1.0,
    "versions": {"python": "3"},
}
