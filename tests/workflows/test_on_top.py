"""``--on-top``: any method as the residual of the default."""

import json
import shlex

import pytest

import sarb
from sarb.errors import ConfigError
from sarb.methods.base import Method
from sarb.networks.ssgrl import SSGRL
from sarb.registry import METHODS, find
from sarb.settings import resolve
from sarb.training.residual import residual_settings
from sarb.workflows.on_top import put_on_top
from sarb.workflows.training import merge_options
from tests.documentation.tools import coarse_pictures, run

TINY = {"backbone": "tiny", "image_size": 64}
POSSIBLE = [name for name in METHODS if find("method", METHODS, name).on_top]


def on_top(row=None, assignments=(), **given):
    options, _, problems = merge_options(row, assignments, given)
    return options, problems + put_on_top(options, given)


def test_options_go_to_the_method_that_has_them():
    words = ["method.rate=0.3", "method.claims=strict", "method.folds=4"]
    options, problems = on_top(assignments=words, method="ll_r")
    assert problems == [] and options["method"] == "auto" and "network" not in options
    assert options["method_options"] == {
        "claims": "strict",
        "folds": 4,
        "residual": "ll_r",
        "residual_options": {"rate": 0.3},
    }
    settings = resolve(None, **{**options, **TINY})
    inner = residual_settings(settings, "ll_r", settings.method_options["residual_options"])
    assert (inner.method, inner.network, inner.method_options) == ("ll_r", "ssgrl", {"rate": 0.3})


def test_a_row_gives_its_method():
    options, problems = on_top("SST")
    assert problems == [] and options["method_options"] == {"residual": "sst"}
    assert residual_settings(resolve(None, **TINY), "sst").method_options["width"] == 64  # of the recipe


@pytest.mark.parametrize(
    ("row", "given", "message"),
    [
        (None, {}, "--on-top needs the method"),
        (None, {"method": "auto"}, "--on-top needs the method"),
        (None, {"method": "ssd"}, "unknown method 'ssd'. Did you mean 'sst'?"),
        (None, {"method": "sst", "network": "kggr"}, "--network: --on-top always trains network ssgrl"),
        ("BoostLU", {}, "network.boost: --on-top always trains network ssgrl"),
    ],
)
def test_what_cannot_be_on_top(row, given, message):
    (problem,) = on_top(row, **given)[1]
    assert message in problem


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"residual": "auto"}, "method 'auto' cannot train a residual; choose another"),
        ({"residual": "fm_mixup"}, "method 'fm_mixup' cannot train a residual; choose another"),
        ({"residual": "ssd"}, "unknown method 'ssd'"),
        ({"residual": "ll_r", "residual_options": {"rte": 1}}, "unknown option of method 'll_r': 'rte'"),
    ],
)
def test_mistakes_are_found_before_features_are_computed(squares_data, options, message, monkeypatch):
    monkeypatch.setattr("sarb.training.fitted.cached_features", None)
    with pytest.raises(ConfigError, match=message):
        sarb.fit(squares_data.train, method="auto", method_options=options, progress=False, **TINY)


@pytest.mark.parametrize("name", POSSIBLE)
def test_every_loss_and_rule_can_be_on_top(squares_data, name):
    made: type[Method] = find("method", METHODS, name)
    assert made.needs <= SSGRL.stages
    model = sarb.fit(
        squares_data.train.hide(0.8, 0),
        method="auto",
        method_options={"residual": name, "claims": "strict", "neighbours": 0},
        epochs=1,
        progress=False,
        **TINY,
    )
    assert model.config["network"] == "probe"


def test_the_command_line_and_the_command_that_repeats_it(squares, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    coarse_pictures(monkeypatch)
    words = [
        "sarb",
        "train",
        "--data",
        str(squares / "labels.csv"),
        "-o",
        "encoding=binary",
        "--known",
        "0.8",
    ]
    words += ["--method", "ll_r", "--on-top", "--set", "method.rate=0.3", "--claims", "strict", "--quiet"]
    words += ["--backbone", "tiny", "--image-size", "64", "--epochs", "1", "--out", "run"]
    assert run(words, monkeypatch) == 0, capsys.readouterr().err
    config = json.loads((tmp_path / "run/config.json").read_text(encoding="utf-8"))
    assert config["settings"]["method_options"]["residual_options"] == {"rate": 0.3}
    rungs = (tmp_path / "run/log.csv").read_text(encoding="utf-8")
    assert "residual ll_r" in rungs
    command = config["data"]["command"]
    assert "method.residual=ll_r" in command
    again = [*shlex.split(command), "--quiet"]
    again[again.index("--out") + 1] = "again"
    assert run(again, monkeypatch) == 0, capsys.readouterr().err
    second = json.loads((tmp_path / "again/config.json").read_text(encoding="utf-8"))
    assert second["settings"] == config["settings"]
