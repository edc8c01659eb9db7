"""What a tracker is told, and that nothing else changes by it."""

import csv
import importlib.machinery
import json
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import sarb
from sarb.errors import ConfigError, SarbError
from sarb.training.track import TRACKERS, Trackers, track_problems
from tests.documentation.test_docs import table
from tests.documentation.tools import ROOT, blocks, commands, hurry, run
from tests.training.test_loop import OPTIONS

QUICK = {**OPTIONS, "epochs": 2}
CONFIG = {"settings": {"lr": 0.1, "words": None, "method_options": {"alpha": 0.5}}, "data": {"name": "ü"}}


def events(folder: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    return EventAccumulator(str(folder / "tensorboard")).Reload()


def curves(folder: Path) -> dict[str, dict[int, float]]:
    """Name -> step -> value; a step that is there twice is an error."""
    found = events(folder)
    points = {
        name: [(each.step, each.value) for each in found.Scalars(name)] for name in found.Tags()["scalars"]
    }
    assert all(len(dict(pairs)) == len(pairs) for pairs in points.values())
    return {name: dict(pairs) for name, pairs in points.items()}


def log(folder: Path) -> list[dict[str, str]]:
    with (folder / "log.csv").open() as file:
        return list(csv.DictReader(file))


def expected(folder: Path) -> dict[str, dict[int, float]]:
    """The same from ``log.csv``, cell by cell."""
    found: dict[str, dict[int, float]] = {}
    for row in log(folder):
        for name, value in row.items():
            if value != "":
                found.setdefault(name, {})[int(row["epoch"])] = pytest.approx(
                    float(value), rel=1e-5, nan_ok=True
                )
    return found


class Told:
    """A module ``wandb`` that remembers what it is told, by the id of the run."""

    def __init__(self) -> None:
        self.runs: dict[str, list[tuple[int, dict[str, float]]]] = {}
        self.given: list[dict[str, Any]] = []
        self.ended: list[int] = []

    def init(self, **given: Any) -> Any:
        self.given.append(given)
        ident = given.get("id") or f"run{len(self.runs)}"
        points = self.runs.setdefault(ident, [])
        return types.SimpleNamespace(
            id=ident,
            log=lambda values, step: points.append((step, values)),
            finish=lambda exit_code: self.ended.append(exit_code),
        )


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> Told:
    told, module = Told(), types.ModuleType("wandb")
    module.__spec__ = importlib.machinery.ModuleSpec("wandb", None)
    module.init = told.init  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", module)
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    return told


def rows(count: int) -> list[dict[str, Any]]:
    return [{"epoch": number, "loss": 1 / (number + 1), "word": "no number"} for number in range(count)]


def test_every_column_of_the_log_and_no_other_numbers(
    squares_data: sarb.Data, tmp_path: Path, wandb: Told
) -> None:
    train = squares_data.train.hide(0.5, 3)
    plain = sarb.fit(train, **QUICK, valid=0.2, out=tmp_path / "plain")
    told = sarb.fit(train, **QUICK, valid=0.2, out=tmp_path / "told", track=["tensorboard", "wandb"])
    found = curves(tmp_path / "told")
    assert found == expected(tmp_path / "told")
    assert {"loss", "loss_cls", "lr", "alpha", "beta", "valid_mAP", "completed_ilrb", "seconds"} <= {*found}
    timeless = [[{**row, "seconds": ""} for row in log(tmp_path / name)] for name in ("plain", "told")]
    assert timeless[0] == timeless[1]
    assert (sarb.predict(plain, train).logits == sarb.predict(told, train).logits).all()
    assert not (tmp_path / "plain/tensorboard").exists() and not (tmp_path / "plain/wandb").exists()
    ((steps, values),) = [zip(*points, strict=True) for points in wandb.runs.values()]
    assert (
        steps == (0, 1) and {*values[1]} == {*found} and values[1]["loss"] == pytest.approx(found["loss"][1])
    )
    (given,) = wandb.given
    config = json.loads((tmp_path / "told/config.json").read_text())
    assert (
        given["config"] == config
        and given["name"] == "told"
        and given["project"] == "sarb"
        and "id" not in given
    )


def test_resume_continues_the_steps(
    squares_data: sarb.Data, tmp_path: Path, wandb: Told, monkeypatch: Any
) -> None:
    from sarb.training.checkpoints import save_checkpoint as save

    train = squares_data.train.hide(0.5, 3)

    def killed(folder: Path, method: Any, optimizer: Any, state: dict[str, Any], *more: Any) -> None:
        if state["epoch"] == 2:  # the second epoch is told, and lost
            raise KeyboardInterrupt
        save(folder, method, optimizer, state, *more)

    given = {**QUICK, "epochs": 3, "out": tmp_path / "run", "track": ["wandb", "tensorboard"]}
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["sarb.training.checkpoints"], "save_checkpoint", killed)
        with pytest.raises(KeyboardInterrupt):
            sarb.fit(train, **given)
    assert sorted(curves(tmp_path / "run")["loss"]) == [0, 1]
    sarb.fit(train, **given, resume=True)
    assert curves(tmp_path / "run") == expected(tmp_path / "run")
    assert [step for step, _ in wandb.runs["run0"]] == [0, 1, 1, 2]  # wandb itself ignores a step that it has
    assert wandb.given[1]["id"] == "run0" and wandb.given[1]["resume"] == "allow"
    assert wandb.ended == [1, 0]


def test_who_comes_later_is_told_the_beginning(tmp_path: Path, wandb: Told) -> None:
    with Trackers("tensorboard", tmp_path) as first:
        first.open(CONFIG, [])
        first.log(rows(1))
    with Trackers(["tensorboard", "wandb"], tmp_path) as both:
        both.open(CONFIG, rows(2)[:1])
        both.log(rows(2))
        both.log(rows(3))
        both.test({"mAP": 50.0, "name": "x"})
    found = curves(tmp_path)
    assert found["loss"] == {0: 1.0, 1: 0.5, 2: pytest.approx(1 / 3)}
    assert found["test_mAP"] == {3: 50.0} and "test_name" not in found and "word" not in found
    assert [step for step, _ in wandb.runs["run0"]] == [0, 1, 2, 3]
    with Trackers("tensorboard", tmp_path) as again:  # a finished run that is tested once more
        again.open(CONFIG, rows(3))
        again.test({"mAP": 51.0})
    assert curves(tmp_path)["test_mAP"] == {3: 51.0} and curves(tmp_path)["loss"].keys() == {0, 1, 2}


def test_a_start_from_nothing_is_another_run(tmp_path: Path, wandb: Told) -> None:
    for _ in range(2):  # the first was killed before its checkpoint
        with Trackers(["tensorboard", "wandb"], tmp_path) as trackers:
            trackers.open(CONFIG, [])
            trackers.log(rows(1))
    assert curves(tmp_path)["loss"] == {0: 1.0} and [*wandb.runs] == ["run0", "run1"]


def test_config_as_text_and_as_hyperparameters(tmp_path: Path) -> None:
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    with Trackers("tensorboard", tmp_path) as trackers:
        trackers.open(CONFIG, [])
    found = events(tmp_path)
    (text,) = found.Tensors("config/text_summary")
    shown = text.tensor_proto.string_val[0].decode()
    assert json.loads(shown.removeprefix("```json\n").removesuffix("\n```")) == CONFIG
    tags = found.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    values = HParamsPluginData.FromString(tags).session_start_info.hparams
    assert values["lr"].number_value == 0.1 and values["method_options.alpha"].number_value == 0.5
    assert values["words"].string_value == "null"
    assert found.SummaryMetadata("_hparams_/session_end_info")


def test_a_failure_is_no_success(tmp_path: Path, wandb: Told) -> None:
    with pytest.raises(ValueError, match="oh"), Trackers(["tensorboard", "wandb"], tmp_path) as trackers:
        trackers.open(CONFIG, [])
        raise ValueError("oh")
    assert wandb.ended == [1]
    with pytest.raises(KeyError):
        events(tmp_path).SummaryMetadata("_hparams_/session_end_info")


def test_only_the_main_process_writes(tmp_path: Path, wandb: Told) -> None:
    with Trackers(["tensorboard", "wandb"], tmp_path) as trackers:
        trackers.open(CONFIG, rows(1), writing=False)
        trackers.log(rows(2))
        trackers.test({"mAP": 1.0})
    assert [*tmp_path.iterdir()] == [] and wandb.given == []


def test_the_outermost_context_closes(tmp_path: Path, wandb: Told) -> None:
    with Trackers.of("wandb", tmp_path) as trackers:
        with Trackers.of(trackers, tmp_path) as same:
            assert same is trackers
            same.open(CONFIG, [])
        assert wandb.ended == []
    assert wandb.ended == [0]


def test_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, squares_data: sarb.Data) -> None:
    with pytest.raises(ConfigError, match=r"unknown tracker 'tensorbord'.*Did you mean 'tensorboard'"):
        Trackers("tensorbord", tmp_path)
    with pytest.raises(ConfigError, match="out='DIR'"):
        sarb.fit(squares_data.train, **QUICK, track="tensorboard")
    monkeypatch.setattr("sarb.training.track.find_spec", lambda name: None)
    assert track_problems(["tensorboard"]) == [
        'track: tensorboard is not installed: pip install "sarb[track]"'
    ]
    assert track_problems(["wandb"]) == ['track: wandb is not installed: pip install "sarb[wandb]"']
    with pytest.raises(ConfigError, match=r"sarb\[track\]"):
        sarb.fit(squares_data.train, **QUICK, out=tmp_path / "run", track="tensorboard")
    assert not (tmp_path / "run").exists()


def test_wandb_that_cannot_start(tmp_path: Path, wandb: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: Any) -> None:
        raise RuntimeError("no API key\nconfigured")

    monkeypatch.setattr(sys.modules["wandb"], "init", refuse)
    with pytest.raises(SarbError, match=r"wandb cannot start \(no API key configured\)"):
        Trackers("wandb", tmp_path).open(CONFIG, [])


def test_command_with_a_missing_package(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr("sarb.training.track.find_spec", lambda name: None)
    words = ["sarb", "train", "--data", "demo", "--out", str(tmp_path / "run"), "--track", "tensorboard"]
    assert run(words, monkeypatch) == 2
    assert 'pip install "sarb[track]"' in capsys.readouterr().err and not (tmp_path / "run").exists()


def test_nothing_is_imported_unless_asked_for(tmp_path: Path) -> None:
    code = "import sys, sarb.training.track, sarb.cli.app; sarb.training.track.Trackers([], None); "
    code += "print([name for name in "
    code += "('tensorboard', 'wandb', 'torch') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_guide(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    hurry(monkeypatch)
    page = ROOT / "docs/tracking.md"
    for block in blocks(page):
        if block.language == "python":
            exec(compile("\n" * block.line + block.text, "tracking.md", "exec"), {})
        elif block.mark is None:
            for words, _ in commands(block):
                assert run(words, monkeypatch) == 0, capsys.readouterr().err
    found = curves(tmp_path / "runs/demo")
    metrics = json.loads((tmp_path / "runs/demo/metrics.json").read_text())
    assert found["test_mAP"] == {1: pytest.approx(metrics["mAP"], rel=1e-5)}
    assert "loss" in curves(tmp_path / "runs/python")
    assert sorted(row[0].strip("`") for row in table(page, "`--track`")) == sorted(TRACKERS)
