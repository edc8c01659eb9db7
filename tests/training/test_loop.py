"""The training loop: what a run writes, how it stops, and what it refuses."""

import csv
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sarb
from sarb.batches.loader import Batch
from sarb.data.dataset import Dataset
from sarb.errors import ConfigError, SarbError
from sarb.labels import LabelMatrix
from sarb.methods.partial_bce import PartialBCE
from sarb.progress import Progress
from sarb.registry import METHODS
from sarb.runs.folder import RunFolder
from tests import two_processes
from tests.waiting import PATIENCE

OPTIONS: dict[str, Any] = {
    "recipe": "small",
    "backbone": "tiny",
    "image_size": 64,
    "batch_size": 8,
    "lr": 2e-3,
    "progress": False,
    "epochs": 3,
    "network_options": {"csrl": "sd", "dim": 16, "hidden": 8},
    "method_options": {"start": 1, "refresh": 1},
}


def fit(data: Dataset, **more: Any) -> sarb.Model:
    return sarb.fit(data, **{**OPTIONS, **more})


def rows(folder: Path, name: str = "log.csv") -> list[dict[str, str]]:
    with (folder / name).open() as file:
        return list(csv.DictReader(file))


def test_run_folder_holds_what_interfaces_promise(squares_data: sarb.Data, tmp_path: Path) -> None:
    train = squares_data.train.hide(0.5, 3)
    fit(train, out=tmp_path / "run", valid=0.2, seed=4, record={"source": "squares"})
    folder = tmp_path / "run"
    config = json.loads((folder / "config.json").read_text())
    assert config["settings"]["seed"] == 4
    assert config["settings"]["method_options"]["start"] == 1
    assert config["data"]["source"] == "squares"
    assert config["data"]["labels"] == train.labels.fingerprint()
    assert config["versions"]["torch"].startswith("2.")
    log = rows(folder)
    assert [row["epoch"] for row in log] == ["0", "1", "2"]
    for column in (
        "loss",
        "loss_cls",
        "loss_cst",
        "lr",
        "alpha",
        "beta",
        "valid_mAP",
        "seconds",
        "completed_ilrb",
        "known",
    ):
        assert column in log[0], column
    assert log[0].get("loss_ilrb") == ""
    assert float(log[1]["loss_ilrb"]) > 0
    assert float(log[1]["loss_plrb"]) > 0
    terms = [float(log[2][f"loss_{name}"]) for name in ("cls", "cst", "ilrb", "plrb")]
    assert float(log[2]["loss"]) == pytest.approx(sum(terms), rel=1e-5)
    used = LabelMatrix.load(folder / "labels.npz")
    assert len(used) == len(train) - round(0.2 * len(train))
    lookup = dict(zip(train.labels.paths, train.labels.values.tolist(), strict=True))
    assert all(lookup[path] == values for path, values in zip(used.paths, used.values.tolist(), strict=True))
    assert int(log[0]["known"]) == np.count_nonzero(used.values)
    for name in ("model.safetensors", "config.json", "README.md"):
        assert (folder / "model" / name).is_file()
    assert (folder / "best" / "model.safetensors").is_file()
    assert "known labels" in (folder / "model" / "README.md").read_text()
    assert len(rows(folder, "steps.csv")) == 3 * -(-len(used) // 8)
    assert not [path for path in folder.rglob("*") if path.name.startswith(".")]


def test_no_folder_without_out(
    squares_data: sarb.Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fit(squares_data.train, epochs=1)
    assert list(tmp_path.iterdir()) == []


def test_the_graph_is_counted_on_partial_training_labels_only(squares_data: sarb.Data) -> None:
    train = squares_data.train.hide(0.5, 0)
    model = fit(train, epochs=1, valid=0.25, seed=0)
    order = np.random.RandomState(0).permutation(len(train))
    kept = train.take(np.sort(order[round(0.25 * len(train)) :]))
    from sarb.settings import resolve

    smoothing = resolve("small").graph_smoothing
    expected = kept.labels.cooccurrence(smoothing)
    assert torch.allclose(model.network.cooccurrence, torch.from_numpy(expected).float())


def test_cached_and_uncached_training_agree_to_fp16_rounding(squares_data: sarb.Data) -> None:
    with_cache = fit(squares_data.train, cache=True, flip=False, method="partial_bce", method_options={})
    without = fit(squares_data.train, cache=False, method="partial_bce", method_options={})
    a, b = (sarb.predict(model, squares_data.test).logits for model in (with_cache, without))
    assert np.abs(a - b).max() < 0.05
    assert not np.array_equal(a, b)


def test_building_the_cache_or_finding_it_gives_the_same_run(
    squares_data: sarb.Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SARB_CACHE", str(tmp_path))
    built, found = (fit(squares_data.train.hide(0.5, 0), epochs=2) for _ in range(2))
    for key, value in built.network.state_dict().items():
        assert torch.equal(value, found.network.state_dict()[key]), key


def test_cache_refuses_augmentation(squares_data: sarb.Data) -> None:
    with pytest.raises(ConfigError, match="per-epoch augmentation bypasses it"):
        fit(squares_data.train, cache=True, augment=True)


def test_augmented_training_runs_from_files(squares_data: sarb.Data) -> None:
    model = fit(squares_data.train, augment=True, epochs=1)
    plain = fit(squares_data.train, cache=False, epochs=1)
    key = "classifier.join.weight"
    assert not torch.equal(model.network.state_dict()[key], plain.network.state_dict()[key])


def test_patience_stops_early(squares_data: sarb.Data, tmp_path: Path) -> None:
    fit(squares_data.train, out=tmp_path / "run", valid=0.3, patience=1, epochs=30, lr=1e-12)
    log = rows(tmp_path / "run")
    best = int(np.argmax([float(row["valid_mAP"]) for row in log]))
    assert len(log) == best + 2 < 30


def test_patience_needs_validation(squares_data: sarb.Data) -> None:
    with pytest.raises(ConfigError, match="patience needs a validation split"):
        fit(squares_data.train, patience=2)


def test_finished_run_is_not_overwritten_and_changed_settings_do_not_resume(
    squares_data: sarb.Data, tmp_path: Path
) -> None:
    fit(squares_data.train, out=tmp_path / "run", epochs=1)
    with pytest.raises(SarbError, match="holds a run already"):
        fit(squares_data.train, out=tmp_path / "run", epochs=1)
    with pytest.raises(
        SarbError, match=r"settings differ:\n  batch_size: was 8, now 4\n  lr: was 0.002, now 0.1"
    ):
        fit(squares_data.train, out=tmp_path / "run", epochs=1, lr=0.1, batch_size=4, resume=True)
    with pytest.raises(ConfigError, match="resume needs the run folder"):
        fit(squares_data.train, resume=True)


def test_init_takes_over_what_fits(squares_data: sarb.Data, tmp_path: Path) -> None:
    first = fit(squares_data.train, out=tmp_path / "run", epochs=2)
    second = fit(squares_data.train, init=tmp_path / "run", epochs=1, lr=0.0, weight_decay=0.0)
    for key, value in first.network.named_parameters():
        assert torch.equal(value, dict(second.network.named_parameters())[key]), key
    labels = squares_data.train.labels
    fewer = Dataset(
        LabelMatrix(labels.values[:, :2], labels.categories[:2], labels.paths), squares_data.train.root
    )
    third = fit(fewer, init=first, epochs=1, lr=0.0, weight_decay=0.0)
    key = "graph.state_update.weight"
    assert torch.equal(first.network.state_dict()[key], third.network.state_dict()[key])
    assert third.network.state_dict()["classifier.category.weight"].shape[0] == 2


def test_frozen_stages_do_not_move_and_trained_ones_do(squares_data: sarb.Data) -> None:
    torch.manual_seed(0)
    model = fit(squares_data.train, epochs=1, backbone_options={"train_stages": 1}, weight_decay=0.1)
    fresh = fit(squares_data.train, epochs=1, backbone_options={"train_stages": 1}, lr=0.0, weight_decay=0.0)
    names = model.network.backbone.stage_names
    moved = {}
    for name in names:
        pairs = zip(model.network.backbone.stage(name), fresh.network.backbone.stage(name), strict=True)
        moved[name] = any(
            not torch.equal(a, b)
            for one, other in pairs
            for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True)
            if a.is_floating_point()
        )
    assert moved == {**dict.fromkeys(names[:-1], False), names[-1]: True}


def test_all_configuration_errors_at_once(squares_data: sarb.Data) -> None:
    with pytest.raises(ConfigError) as caught:
        sarb.fit(squares_data.train, method="sabr", network="ssgl", epoch=3, lr=-1.0, recipe="small")
    text = str(caught.value)
    for part in (
        "Did you mean 'sarb'",
        "Did you mean 'ssgrl'",
        "Did you mean 'epochs'",
        "lr must be at least 0",
    ):
        assert part in text


@pytest.mark.parametrize("cache", [False, True])
def test_an_unreadable_image_of_a_few_is_an_error_that_names_it(tmp_path: Path, cache: bool) -> None:
    (tmp_path / "bad.jpg").write_text("not an image")
    data = Dataset(LabelMatrix([[1] * 4], ["a", "b", "c", "d"], ["bad.jpg"]), tmp_path)
    with pytest.raises(SarbError, match=r"1 of 1 images cannot be read(.|\n)*bad\.jpg"):
        fit(
            data,
            cache=cache,
            epochs=1,
            network="pooled",
            network_options={},
            method="partial_bce",
            method_options={},
        )


class Rounds(PartialBCE):
    """A method in two rounds with a store per image, as curriculum labeling needs."""

    rounds = 2
    seen: list[tuple[int, float]] = []  # noqa: RUF012

    def prepare(self, labels: LabelMatrix) -> None:
        super().prepare(labels)
        self.register_buffer("store", torch.zeros(len(labels)))

    def begin_epoch(self, epoch: int, loader: Callable[[], Iterable[Batch]]) -> None:
        super().begin_epoch(epoch, loader)
        weight = self.network.classifier.weight
        self.seen.append((epoch, float(weight.detach().abs().sum())))

    def forward(self, batch: Batch) -> dict[str, torch.Tensor]:
        self.store[batch.index] += 1
        return super().forward(batch)


def test_rounds_start_again_from_the_first_weights_and_keep_the_store(
    squares_data: sarb.Data, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(METHODS, "rounds", f"{__name__}:Rounds")
    Rounds.seen = []
    fit(
        squares_data.train,
        method="rounds",
        network="pooled",
        network_options={},
        method_options={},
        epochs=2,
        out=tmp_path / "run",
    )
    assert [epoch for epoch, _ in Rounds.seen] == [0, 1, 2, 3]
    assert Rounds.seen[2][1] == Rounds.seen[0][1] != Rounds.seen[1][1]
    from safetensors.torch import load_file

    state = load_file(tmp_path / "run" / "checkpoint" / "state.safetensors")
    assert state["method.store"].tolist() == [4.0] * len(squares_data.train)


def test_nothing_is_pickled(squares_data: sarb.Data, tmp_path: Path) -> None:
    fit(squares_data.train, out=tmp_path / "run", epochs=1)
    kinds = {path.suffix for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert kinds <= {".json", ".csv", ".npz", ".safetensors", ".md"}
    np.load(tmp_path / "run" / "labels.npz", allow_pickle=False)


def test_words_are_read_and_missing_names_are_learned(squares_data: sarb.Data, tmp_path: Path) -> None:
    names = squares_data.categories
    vectors = np.random.default_rng(0).normal(size=(len(names) - 1, 7)).round(4)
    lines = [
        " ".join([name.replace(" ", "_"), *map(str, row)])
        for name, row in zip(names[1:], vectors, strict=True)
    ]
    (tmp_path / "glove.txt").write_text("\n".join(lines) + "\n")
    model = fit(squares_data.train, words=tmp_path / "glove.txt", out=tmp_path / "run", epochs=2)
    assert model.network.words is not None
    assert np.allclose(model.network.words()[1:].detach().numpy(), vectors, atol=1e-6)
    assert model.network.words.found.tolist() == [False] + [True] * (len(names) - 1)
    again = sarb.load_model(tmp_path / "run")
    assert torch.equal(again.network.words(), model.network.words())


def test_words_are_left_aside_by_a_network_without_them(
    squares_data: sarb.Data, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"network": "pooled", "network_options": {}, "method": "partial_bce", "method_options": {}}
    fit(squares_data.train, words=tmp_path / "none.txt", epochs=1, **{**options, "progress": True})
    assert "network pooled uses no word vectors" in capsys.readouterr().err


def test_a_data_set_can_validate(squares_data: sarb.Data, tmp_path: Path) -> None:
    fit(squares_data.train, valid=squares_data.test, out=tmp_path / "run", epochs=1)
    row = rows(tmp_path / "run")[0]
    expected = sarb.evaluate(sarb.load_model(tmp_path / "run"), squares_data.test, cache=True)
    assert float(row["valid_mAP"]) == pytest.approx(expected.mAP, abs=1e-6)
    assert float(row["valid_CF1"]) == pytest.approx(expected["CF1"], abs=1e-6)


@pytest.mark.parametrize("valid", [1.0, -0.1, 7])
def test_valid_is_a_share_below_one(squares_data: sarb.Data, valid: float) -> None:
    with pytest.raises(ConfigError, match="valid must be a fraction"):
        fit(squares_data.train, valid=valid)


def test_balanced_positive_weight_is_the_root_of_the_imbalance(squares_data: sarb.Data) -> None:
    from sarb.model import build_network

    labels = squares_data.train.labels
    network = build_network(len(labels.categories), network="pooled", backbone="tiny")
    method = PartialBCE(network, positive_weight="balanced")
    method.prepare(labels)
    expected = np.clip(np.sqrt((labels.negatives + 1) / (labels.positives + 1)), 1, 10)
    assert np.allclose(method.positive_weight.numpy(), expected)
    logits, target = torch.zeros(1, len(expected)), torch.ones(1, len(expected))
    loss = method.loss(logits, sarb.Targets(target, target))
    assert loss.item() == pytest.approx(np.log(2) * expected.mean(), rel=1e-6)
    with pytest.raises(ConfigError, match="a number or 'balanced'"):
        PartialBCE(network, positive_weight="balancd")


def test_a_diverging_run_stops_with_advice(squares_data: sarb.Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartialBCE, "loss", lambda self, logits, targets: logits.sum() * float("nan"))
    with pytest.raises(SarbError, match="the loss is not finite at epoch 0, step 0"):
        fit(squares_data.train, method="partial_bce", method_options={})


def test_clipping_bounds_the_step(squares_data: sarb.Data) -> None:
    free = fit(squares_data.train, epochs=1, method="partial_bce", method_options={})
    clipped = fit(squares_data.train, epochs=1, clip=1e-12, method="partial_bce", method_options={})
    start = fit(
        squares_data.train, epochs=1, lr=0.0, weight_decay=0.0, method="partial_bce", method_options={}
    )

    def moved(model: sarb.Model) -> float:
        pairs = zip(model.network.parameters(), start.network.parameters(), strict=True)
        return sum((a - b).abs().sum().item() for a, b in pairs)

    assert moved(clipped) < 0.5 * moved(free)


def test_per_category_coefficients_are_logged_with_their_spread(
    squares_data: sarb.Data, tmp_path: Path
) -> None:
    options = {"start": 0, "per_category": True}
    fit(squares_data.train.hide(0.5, 0), out=tmp_path / "run", epochs=1, method_options=options)
    row = rows(tmp_path / "run")[0]
    assert float(row["alpha_min"]) <= float(row["alpha"]) <= float(row["alpha_max"])
    assert float(row["beta_min"]) < float(row["beta_max"])


def test_sarb_refuses_impossible_numbers(squares_data: sarb.Data) -> None:
    with pytest.raises(ConfigError) as caught:
        fit(squares_data.train, method_options={"refresh": 0, "prototypes": 0})
    assert len(caught.value.problems) == 2


def test_few_images_get_more_epochs_unless_a_number_was_asked_for(
    squares_data: sarb.Data, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {**OPTIONS, "method": "partial_bce", "method_options": {}, "min_steps": 12}
    asked = options.pop("epochs")
    (tmp_path / "recipe.toml").write_text(
        "[train]\nepochs = 1\naugment = false\n[network.ssgrl]\ncsrl = 'sam'\n"
    )
    options["recipe"] = tmp_path / "recipe.toml"
    sarb.fit(squares_data.train, out=tmp_path / "grown", **{**options, "progress": True})
    assert (
        "3 epochs instead of 1: so few images need more epochs to reach about 12 steps"
        in capsys.readouterr().err
    )
    assert len(rows(tmp_path / "grown")) == 3  # 36 images in batches of 8 are 5 steps: 12 steps take 3 epochs
    sarb.fit(squares_data.train, out=tmp_path / "most", **{**options, "min_steps": 10_000})
    assert len(rows(tmp_path / "most")) == 20
    del options["min_steps"]
    sarb.fit(squares_data.train, out=tmp_path / "asked", epochs=asked, **{**options, "progress": True})
    assert len(rows(tmp_path / "asked")) == asked and "instead of" not in capsys.readouterr().err


def test_blending_can_start_at_a_share_of_the_epochs(
    squares_data: sarb.Data, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"start": 0.5, "refresh": 0.25}
    fit(
        squares_data.train.hide(0.5, 0),
        out=tmp_path / "run",
        epochs=4,
        method_options=options,
        progress=Progress(verbose=True),
    )
    assert [line for line in capsys.readouterr().err.splitlines() if "begins" in line] == [
        "epoch 2: blending begins"
    ]
    assert [float(row["completed_ilrb"]) > 0 for row in rows(tmp_path / "run")] == [False, False, True, True]


@pytest.mark.slow
def test_two_processes_share_the_batches_and_write_one_run(squares: Path, tmp_path: Path) -> None:
    import os
    import subprocess

    command = [
        *two_processes.SARB,
        "train",
        "--data",
        str(squares / "labels.csv"),
        "-o",
        "encoding=binary",
        "--known",
        "0.5",
        "--method",
        "sarb",
        "--backbone",
        "tiny",
        "--image-size",
        "64",
        "--epochs",
        "2",
        "--batch-size",
        "6",
        "--set",
        "network.dim=16",
        "--set",
        "method.start=1",
        "--valid",
        "0.2",
        "--out",
        str(tmp_path / "run"),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "SARB_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=2 * PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("report:") == 1
    # 29 training images in batches of 6, three for each process: five steps an epoch
    assert len(rows(tmp_path / "run", "steps.csv")) == 10
    assert (tmp_path / "run" / "report.html").is_file()
    for words in (["evaluate", "--json"], ["calibrate", "--folds", "2"]):
        more = [*two_processes.SARB, *words, str(tmp_path / "run")]
        again = subprocess.run(
            more, capture_output=True, text=True, env=environment, timeout=2 * PATIENCE, check=False
        )
        assert again.returncode == 0, again.stderr
        assert again.stderr.count("calibrated (platt)") == words.count("calibrate")
        if "--json" in words:  # one report, with the numbers of the test after training
            metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
            assert json.loads(again.stdout)["mAP"] == metrics["mAP"]
    assert not RunFolder(tmp_path / "run").folds.exists()


@pytest.mark.parametrize("form", ["batch", "image", "durand", "entries"])
def test_accumulated_parts_are_one_large_batch(squares_data: sarb.Data, form: str) -> None:
    options = {
        "method": "partial_bce",
        "network": "pooled",
        "network_options": {},
        "method_options": {"form": form},
        "backbone_options": {"train_stages": 0},  # no batch norm, which would look at the parts
        "precision": "fp64",
        "epochs": 1,
    }
    train = squares_data.train.hide(0.3, 0)
    whole, parts, mean = (
        fit(train, **options, batch_size=size, accumulate=count).network.classifier.weight
        for size, count in ((12, 1), (5, 3), (4, 3))
    )
    assert torch.allclose(whole, mean, rtol=0, atol=1e-7)
    assert not torch.allclose(whole, parts, rtol=0, atol=1e-7), "15 images are another batch"


def test_a_run_too_short_for_blending_warns(squares_data: sarb.Data) -> None:
    with pytest.warns(
        UserWarning, match="completed from epoch 5 on, but the last epoch is 0: none in this run"
    ):
        fit(squares_data.train, epochs=1, method_options={"start": 5})


def test_nothing_to_learn_from_is_an_error(squares_data: sarb.Data, tmp_path: Path) -> None:
    with pytest.raises(SarbError, match="no training images"):
        fit(squares_data.train.take([]))
    with pytest.raises(SarbError, match="none of the 180 training labels is known"):
        fit(squares_data.train.hide(0.0, 0), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
