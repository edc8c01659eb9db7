"""The command line as a user meets it: exit codes, one clear line, files written whole."""

import csv
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

import sarb
from sarb.cli.app import main
from sarb.settings import parse_assignment
from tests.waiting import PATIENCE, wait_until

TRAIN = [
    "--method",
    "sarb",
    "--backbone",
    "tiny",
    "--image-size",
    "64",
    "--epochs",
    "2",
    "--set",
    "network.dim=16",
    "--set",
    "network.hidden=8",
]
TRAIN += ["--set", "method.start=1"]


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["sarb", *map(str, arguments)])
    previous = signal.getsignal(signal.SIGTERM)
    try:
        main()
    except SystemExit as stop:
        return int(stop.code or 0)
    finally:
        signal.signal(signal.SIGTERM, previous)
    raise AssertionError("main always exits")


@pytest.fixture(scope="module")
def trained(squares: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SARB_CACHE", str(tmp_path_factory.mktemp("cache")))
        code = run(
            patch,
            "train",
            "--data",
            squares / "labels.csv",
            "-o",
            "encoding=binary",
            "--known",
            "0.5",
            "--valid",
            "0.2",
            "--out",
            folder,
            "--quiet",
            *TRAIN,
        )
    assert code == 0
    return folder


def test_train_writes_the_run_folder(trained: Path) -> None:
    for name in (
        "config.json",
        "log.csv",
        "labels.npz",
        "metrics.json",
        "scores.npz",
        "report.html",
        "model/README.md",
    ):
        assert (trained / name).is_file(), name
    assert list((trained / "plots").glob("*.png"))
    metrics = json.loads((trained / "metrics.json").read_text())
    assert 0 <= metrics["mAP"] <= 100
    assert 0 <= metrics["best"]["mAP"] <= 100
    used = sarb.LabelMatrix.load(trained / "labels.npz")
    assert 0.3 < used.known_share < 0.7


def test_mask_is_the_documented_draw(trained: Path, squares: Path) -> None:
    hidden = sarb.load(squares / "labels.csv", encoding="binary").train.labels.hide(0.5, 0)
    used = sarb.LabelMatrix.load(trained / "labels.npz")
    lookup = dict(zip(hidden.paths, hidden.values.tolist(), strict=True))
    assert all(lookup[path] == row for path, row in zip(used.paths, used.values.tolist(), strict=True))


def test_evaluate_repeats_the_run_s_numbers(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "evaluate", trained, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    stored = json.loads((trained / "metrics.json").read_text())
    assert printed["mAP"] == stored["mAP"]  # both from the same cache
    assert printed["images"] == stored["images"] == 12
    assert printed["name"].startswith("run: 12 of 48 images, split test")
    assert (printed["split"], printed["images_in_source"], printed["training_images"]) == ("test", 48, 0)


def test_evaluating_training_images_says_so(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(monkeypatch, "evaluate", trained, "--split", "train", "--out", tmp_path / "e") == 0
    captured = capsys.readouterr()
    assert "mAP" in captured.out
    # seven of the 36 were kept for validation
    assert "29 of these 36 images were training images of this run" in captured.err
    assert "too good; --split test takes the 12 images that it held out" in captured.err
    assert (tmp_path / "e" / "per_category.csv").is_file()
    assert run(monkeypatch, "evaluate", trained, "--split", "valid") == 2
    assert "has no images in split 'valid'" in capsys.readouterr().err


def test_predict_prints_labels_with_probabilities(
    trained: Path,
    squares: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    photo = tmp_path / "photo.jpg"
    Image.new("RGB", (200, 120), "red").save(photo)
    assert run(monkeypatch, "predict", trained, photo, "--top-k", "2") == 0
    line = capsys.readouterr().out.strip()
    assert line.startswith(f"{photo}: ")
    assert len(line.split(",")) == 2
    assert run(monkeypatch, "predict", trained, photo, "--json", "--threshold", "0") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert set(row["labels"]) == set(sarb.load_model(trained).categories)


@pytest.mark.parametrize("kind", ["missing", "text", "truncated"])
def test_a_bad_image_is_one_clear_line_and_exit_code_2(
    trained: Path,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    photo = tmp_path / "photo.jpg"
    if kind == "text":
        photo.write_text("hello")
    if kind == "truncated":
        Image.effect_noise((200, 200), 90).convert("RGB").save(photo)
        photo.write_bytes(photo.read_bytes()[:2000])
    assert run(monkeypatch, "predict", trained, photo, "--out", tmp_path / "out.csv") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.strip().splitlines()) == 1
    assert str(photo) in captured.err
    assert not (tmp_path / "out.csv").exists()


def test_predict_skips_and_lists_bad_images_among_good_ones(
    trained: Path,
    squares: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    Image.new("RGB", (64, 64), "blue").save(tmp_path / "good.png")
    (tmp_path / "bad.jpg").write_text("hello")
    out = tmp_path / "out.csv"
    assert run(monkeypatch, "predict", trained, tmp_path, "--out", out) == 3
    with out.open() as file:
        assert [Path(row["file_name"]).name for row in csv.DictReader(file)] == ["good.png"]
    with (tmp_path / "out.csv.errors.csv").open() as file:
        assert [Path(row["file_name"]).name for row in csv.DictReader(file)] == ["bad.jpg"]
    assert "bad.jpg" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["train", "--data", "demo", "--method", "sabr"], "Did you mean 'sarb'"),
        (["train", "--data", "demo", "--row", "Ours", "--set", "method.alhpa=0.3"], "Did you mean 'alpha'"),
        (
            ["train", "--data", "demo", "--method", "sarb", "--set", "method.alpha=much"],
            "method.alpha must be float, got 'much'",
        ),
        (
            ["train", "--data", "demo", "--set", "method.alpha=0.3"],
            "unknown option of method 'auto': 'alpha'. It is an option of method sarb or dsrb: add --method sarb",
        ),
        (["train", "--data", "demo", "--set", "method.clams=strict"], "Did you mean 'claims'"),
        (["train", "--data", "demo", "--set", "metod.alpha=0.3"], "Did you mean 'method'"),
        (["train", "--data", "demo", "--row", "Ours with SAM"], "Did you mean 'Ours w/ SAM'"),
        (["train", "nosuch", "--data", "demo"], "unknown recipe 'nosuch'"),
        (["train", "--data", "demo", "--known", "10"], "did you mean 0.1?"),
        (["train"], "no data: add --data SRC"),
        (["train", "--data", "dmeo"], "demo"),
        (["train", "--data", "demo", "-o", "encoding"], "expected key=value"),
        (["evaluate", "/no/such/run"], "no such run or model folder"),
        (["list", "metods"], "Did you mean 'methods'"),
        (["report", "/no/such/run"], "no such run or model folder"),
        (["complete", "/no/such/run", "--out", "x.csv"], "no such run or model folder"),
        (["complete", "/no/such/run", "--data", "demo", "--out", "x.csv"], "no such run or model folder"),
        (["suggest", "/no/such/run", "--budget", "3", "--out", "x.csv"], "no such run or model folder"),
        (["calibrate", "/no/such/run"], "no such run or model folder"),
        (["explain", "/no/such/run", "x.jpg"], "no such run or model folder"),
        (["export", "/no/such/run", "x.onnx"], "no such run or model folder"),
        (["export", "/no/such/run", "--out", "x.onnx"], "no such run or model folder"),
        (["export", "runs/x"], "export: expected one file to write, e.g. sarb export runs/x model.onnx"),
        (["export", "runs/x", "a.onnx", "--out", "b.onnx"], "export: expected one file to write"),
        (["train", "photos/labels.csv"], "did you mean --data photos/labels.csv?"),
        (["train", "--encoding", "binary"], "-o encoding=binary"),
        (["train", "--data", "x.csv", "--split-seed=3"], "-o split_seed=3"),
        (["train", "--unlisted"], "-o unlisted=VALUE"),
        (["evaluate", "runs/x", "labels.csv"], "--data labels.csv"),
        (["data", "check", "labels.csv", "encoding=binary"], "-o encoding=binary"),
        (["predict"], "no model given, neither RUN nor --onnx FILE"),
        (["predict", "--onnx", "m.onnx"], "no image given after the model m.onnx"),
        (["train", "--data", "demo", "--epochs", "many"], "--epochs"),
        (["nosuch"], "No such command"),
    ],
)
def test_usage_errors_exit_with_2(
    arguments: list[str], expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *arguments) == 2
    captured = capsys.readouterr()
    assert expected in " ".join(captured.err.split())
    assert "Traceback" not in captured.err


def test_several_mistakes_are_reported_together(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(monkeypatch, "train", "--data", "demo", "--method", "sabr", "--set", "epoch=3", "--set", "x.y=1")
        == 2
    )
    error = capsys.readouterr().err
    assert "x" in error
    assert run(monkeypatch, "train", "--data", "demo", "--method", "sabr", "--set", "epoch=3") == 2
    error = capsys.readouterr().err
    assert "'sarb'" in error
    assert "'epochs'" in error


def test_a_bug_of_ours_exits_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sarb.workflows.listing

    def broken(what: str) -> dict[str, str]:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(sarb.workflows.listing, "listing", broken)
    assert run(monkeypatch, "list", "rows") == 1
    assert "a bug of ours" in capsys.readouterr().err


@pytest.mark.parametrize(("code", "leaves"), [(0, True), (None, True), (3, True), (2, False)])
def test_a_process_that_ends_inside_a_command_leaves_its_group_too(
    monkeypatch: pytest.MonkeyPatch, code: int | None, leaves: bool
) -> None:
    import sarb.cli.app
    import sarb.workflows.listing

    def ends(what: str) -> dict[str, str]:
        raise SystemExit(code)  # as all processes of torchrun but the first do after a training

    left: list[int] = []
    monkeypatch.setattr(sarb.workflows.listing, "listing", ends)
    monkeypatch.setattr(sarb.cli.app, "_leave_process_group", left.append)
    assert run(monkeypatch, "list", "rows") == (code or 0)
    assert left == [code or 0] * leaves


def test_version_help_and_lists(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--version") == 0
    assert capsys.readouterr().out.strip() == f"sarb {sarb.__version__}"
    for command in ("train", "evaluate", "predict", "report", "list"):
        assert run(monkeypatch, command, "--help") == 0
        assert f"$ sarb {command}" in capsys.readouterr().out
    expected = {
        "rows": "Ours w/ SAM",
        "methods": "sarb",
        "networks": "pooled",
        "backbones": "resnet101",
        "datasets": "demo",
        "recipes": "coco2014",
    }
    for what, name in expected.items():
        assert run(monkeypatch, "list", what) == 0
        assert name in capsys.readouterr().out


def test_help_shows_the_defaults_that_are_said_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from typer.main import get_command

    from sarb.cli.app import app

    group = get_command(app)
    monkeypatch.setenv("COLUMNS", "200")
    for words in [[name] for name in group.commands] + [
        ["data", name] for name in group.commands["data"].commands
    ]:  # type: ignore[attr-defined]
        assert run(monkeypatch, *words, "--help") == 0
        shown = capsys.readouterr().out
        assert " . " not in shown, words  # a default in brackets is taken for markup and vanishes
        if words == ["evaluate"]:
            assert "Data source. [default: (the run's own)]" in shown
        if words == ["predict"]:
            assert "[RUN]" in shown and "not with --onnx" in shown and "required" not in shown


def test_report_is_written_anew(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (trained / "report.html").unlink()
    assert run(monkeypatch, "report", trained) == 0
    assert (trained / "report.html").stat().st_size > 10_000


def test_row_and_set_reach_the_configuration(
    squares: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code = run(
        monkeypatch,
        "train",
        "--data",
        squares / "labels.csv",
        "-o",
        "encoding=binary",
        "--row",
        "Ours w/ SAM",
        "--out",
        tmp_path / "run",
        "-q",
        *TRAIN,
        "--set",
        "method.alpha=0.3",
        "--set",
        "lr.sd=0.5",
        "--set",
        "weight_decay=0",
    )
    assert code == 0
    settings = json.loads((tmp_path / "run" / "config.json").read_text())["settings"]
    assert settings["network_options"]["csrl"] == "sam"
    assert settings["method_options"]["alpha"] == 0.3
    assert settings["lr_scale"]["sd"] == 0.5
    assert settings["weight_decay"] == 0


def test_nothing_given_is_auto_and_the_recorded_command_repeats_it(
    squares: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import shlex

    monkeypatch.chdir(tmp_path)
    source = ["--data", squares / "labels.csv", "-o", "encoding=binary", "--known", "0.5"]
    sizes = ["--backbone", "tiny", "--image-size", "64", "--epochs", "2", "--seed", "3"]
    assert run(monkeypatch, "train", *source, *sizes, "--claims", "strict", "--quiet") == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.endswith("-auto-50")
    config = json.loads((folder / "config.json").read_text())
    settings = config["settings"]
    assert (settings["method"], settings["network"], settings["backbone"]) == ("auto", "probe", "tiny")
    assert settings["method_options"] == {"claims": "strict"} and settings["seed"] == 3
    words = [
        str(tmp_path / "again") if word == f"runs/{folder.name}" else word
        for word in shlex.split(config["data"]["command"])
    ]
    assert run(monkeypatch, *words[1:], "--quiet") == 0
    weights = "model/model.safetensors"
    assert (tmp_path / "again" / weights).read_bytes() == (folder / weights).read_bytes()


def test_the_recorded_command_repeats_the_run(
    trained: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import shlex

    command = json.loads((trained / "config.json").read_text())["data"]["command"]
    words = [str(tmp_path / "again") if word == str(trained) else word for word in shlex.split(command)]
    assert run(monkeypatch, *words[1:], "--quiet") == 0
    for name in ("steps.csv", "per_category.csv"):
        assert (tmp_path / "again" / name).read_bytes() == (trained / name).read_bytes()


def test_ctrl_c_exits_with_130_and_says_what_is_saved(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sarb.workflows.calibration
    import sarb.workflows.listing

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sarb.workflows.listing, "listing", interrupted)
    assert run(monkeypatch, "list", "rows") == 130
    assert capsys.readouterr().err == "sarb: interrupted\n"  # nothing was written, so nothing is said of it
    monkeypatch.setattr(sarb.workflows.calibration, "calibrate_session", interrupted)
    assert run(monkeypatch, "calibrate", "runs/x") == 130
    said = "interrupted; finished parts and the last checkpoint are saved; the same command continues"
    assert said in capsys.readouterr().err


def test_sigterm_exits_with_143_and_the_run_resumes(squares: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "sarb.cli",
        "train",
        "--data",
        str(squares / "labels.csv"),
        "-o",
        "encoding=binary",
        "--out",
        str(tmp_path / "run"),
        *TRAIN,
        "--epochs",
        "2000",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "SARB_CACHE": str(tmp_path / "cache")}
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    checkpoint = tmp_path / "run" / "checkpoint" / "state.safetensors"
    wait_until(lambda: checkpoint.exists() or process.poll() is not None, "an epoch is saved")
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == 143, error
    assert "saved" in error
    assert checkpoint.is_file()
    assert not [path for path in (tmp_path / "run").rglob("*") if path.name.startswith(".")]


TIES = """
[train]
method = "auto"
backbone = "tiny"
image_size = 64

[method.auto.ties]
CATEGORY = ["CONCEPT"]
blue = []
"""


@pytest.mark.parametrize("way", ["recipe", "--set"])
def test_ties_by_hand(
    way: str,
    squares: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A recipe and --set tie categories to concepts; a wrong name is an error with the nearest one."""

    def train(category: str, concept: str, out: Path) -> int:
        recipe = tmp_path / "ties.toml"
        recipe.write_text(TIES.replace("CATEGORY", category).replace("CONCEPT", concept), encoding="utf-8")
        options: list[object] = [recipe]
        if way == "--set":
            options = ["--backbone", "tiny", "--image-size", "64"]
            options += ["--set", f'method.ties={{{category}=["{concept}"], blue=[]}}']
        source = ["--data", squares / "labels.csv", "-o", "encoding=binary"]
        return run(monkeypatch, "train", *options, *source, "--out", out, "--quiet")

    assert train("rad", "terier", tmp_path / "wrong") == 2
    said = capsys.readouterr().err
    assert "tie of 'rad': no such category. Did you mean 'red'?" in said
    assert "is called 'terier'. Did you mean 'terrier'?" in said
    assert train("red", "terrier", tmp_path / "run") == 0
    config = json.loads((tmp_path / "run" / "config.json").read_text(encoding="utf-8"))
    ties = {"red": ["terrier"], "blue": []}
    assert config["settings"]["method_options"]["ties"] == ties
    if way == "--set":  # the command that repeats the run can be read again
        words = shlex.split(config["data"]["command"])
        assert parse_assignment(words[words.index("--set") + 1]) == ("method", "ties", ties)
