"""Train a run again: its own settings, the new table, a folder that does not exist."""

import pytest

from sarb.runs.again import free_folder, repeated, train_again
from sarb.runs.folder import RunFolder
from tests.documentation.tools import parse

COMMAND = (
    "sarb train mine.toml --data 'a b.csv' -o encoding=binary --known 0.1 --mask-seed 3 --out runs/a "
    "--image-size 224 --set method.folds=10"
)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run in ``runs/a`` that hid labels."""
    monkeypatch.chdir(tmp_path)
    folder = RunFolder("runs/a")
    folder.path.mkdir(parents=True)
    folder.write_config({"data": {"source": "a b.csv", "known": 0.1, "command": COMMAND}})
    return folder.path


def test_a_command_without_its_data_and_folder(run):
    settings = ["--image-size", "224", "--set", "method.folds=10"]
    assert repeated(run) == ["train", "mine.toml", *settings]
    assert repeated(run, hide=True) == ["train", "mine.toml", "--known", "0.1", "--mask-seed", "3", *settings]
    RunFolder(run).write_config({"settings": {}})
    assert repeated(run) == []


def test_the_next_training_has_the_settings_of_the_last(run):
    words = train_again(run, "reviewed.csv", {"delimiter": ";"})
    given = parse(["sarb", *words])
    assert (given["data"], given["option"], str(given["out"])) == (
        "reviewed.csv",
        ["delimiter=;"],
        "runs/a-2",
    )
    assert (given["image_size"], given["set_"], given["known"]) == (224, ["method.folds=10"], 1)
    assert parse(["sarb", *train_again(run, "a b.csv", {})])["known"] == 0.1  # the same study once more


def test_without_a_run_the_folder_is_named_after_the_table(run, tmp_path):
    words = ["train", "--data", "photos/labels.csv", "--out", "runs/labels"]
    assert train_again(None, "photos/labels.csv", {}) == words
    (tmp_path / "runs" / "labels").mkdir()
    assert train_again(None, "photos/labels.csv", {})[-1] == "runs/labels-2"
    assert train_again(None, "list:photos/tags.csv", {})[-1] == "runs/tags"
    RunFolder(run).write_config({"settings": {}})
    assert train_again(run, "photos/x.csv", {})[-1] == "runs/x"


def test_folders_are_never_reused_and_numbers_go_on(tmp_path):
    for name in ("run", "run-2", "demo-10"):
        (tmp_path / name).mkdir()
    assert free_folder(tmp_path / "run") == free_folder(tmp_path / "run-2") == tmp_path / "run-3"
    assert free_folder(tmp_path / "demo-10") == tmp_path / "demo-10-2"
