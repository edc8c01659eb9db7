"""Training again on answers, with a real training in a process of its own."""

import json

import pytest

import sarb
from sarb.errors import SarbError
from sarb.serve.collected import Collected
from sarb.serve.label_studio_open import LabelStudio, open_backend
from sarb.serve.recogniser import Recogniser
from sarb.serve.table import Table
from sarb.workflows.training import train_session
from tests.waiting import wait_until

SETTINGS = {"method": "partial_bce", "network": "ssgrl", "backbone": "tiny", "epochs": 1, "image_size": 64}


@pytest.fixture
def trained(gaps, tmp_path):
    """A run of ``gaps`` as ``sarb train`` leaves it."""
    folder, _ = train_session(
        source=str(gaps / "labels.csv"),
        data_options={"encoding": "binary"},
        given=SETTINGS,
        out=tmp_path / "runs" / "mine",
        quiet=True,
        page=False,
    )
    return folder


def backend(trained, gaps, after):
    recogniser = Recogniser(sarb.load_model(trained))
    given = LabelStudio("http://127.0.0.1:1", "", (), after)
    return open_backend(trained, recogniser, given, out=gaps / "answered.csv")


def test_one_training_at_a_time_and_the_new_model_answers(trained, gaps, capfd):
    opened = backend(trained, gaps, after=1)
    try:
        before = opened.version()
        unknown = sarb.load(gaps / "labels.csv", encoding="binary").train.labels
        row, column = next(zip(*(unknown.values == 0).nonzero(), strict=True))
        result = {
            "from_name": unknown.categories[column],
            "type": "choices",
            "value": {"choices": ["yes"]},
        }
        content = {
            "annotation": {"id": 1, "result": [result]},
            "task": {"id": 1, "data": {"file_name": unknown.paths[row]}},
            "project": {"id": 1},
        }
        assert opened.webhook("ANNOTATION_CREATED", content) == "training mine-2"
        assert opened.train("once more") == "a training is running already"
        wait_until(lambda: not opened.retraining.running, "the training ends")
        assert opened.version() != before and opened.version().startswith("sarb mine-2 ")
        said = capfd.readouterr().err
        assert (
            "training again: 1 new answered tasks\n$ sarb train" in said
            and "mine-2 answers from now on" in said
        )
        assert opened.webhook("ANNOTATION_UPDATED", content) == "collected"  # nothing new: no other training
        new = sarb.LabelMatrix.load(trained.with_name("mine-2") / "labels.npz")
        assert new.values[new.paths.index(unknown.paths[row]), column] == 1
        settings, again = (
            json.loads((folder / "config.json").read_text(encoding="utf-8"))["settings"]
            for folder in (trained, trained.with_name("mine-2"))
        )
        assert again == settings
    finally:
        opened.close()


def test_a_training_that_fails_leaves_the_old_model(trained, gaps, capfd):
    opened = backend(trained, gaps, after=0)
    try:
        before = opened.version()
        opened.retraining._command += ["--epochs", "none"]
        opened.train("asked")
        wait_until(lambda: not opened.retraining.running, "the training ends")
        assert opened.version() == before and "failed with exit code 2" in capfd.readouterr().err
    finally:
        opened.close()


def test_the_end_of_the_server_stops_a_training(trained, gaps):
    opened = backend(trained, gaps, after=0)
    opened.retraining._command += ["--epochs", "100000"]
    opened.train("asked")
    opened.close()
    assert opened.retraining._process.returncode is not None
    assert not opened.retraining.running


def test_a_run_without_its_command_cannot_be_repeated(run, recogniser, gaps, capsys):
    labels = {"labels": str(gaps / "labels.csv"), "options": {"encoding": "binary"}}
    with pytest.raises(SarbError, match="does not say which command trained it"):
        open_backend(run, recogniser, LabelStudio(retrain_after=5), **labels)
    with pytest.raises(SarbError, match="add --labels SRC"):
        open_backend(run, recogniser, LabelStudio(retrain_after=5))
    opened = open_backend(run, recogniser, LabelStudio())
    assert opened.collected is None and "add --labels SRC" in capsys.readouterr().err
    assert "secret" not in repr(LabelStudio(token="secret"))


def test_a_file_that_holds_other_labels_is_not_replaced(gaps):
    (gaps / "answered.csv").write_text("mine\n", encoding="utf-8")
    table = Table(sarb.load(gaps / "labels.csv", encoding="binary"))
    with pytest.raises(SarbError, match="holds no answers from Label Studio"):
        Collected(table, gaps / "answered.csv", "labels.csv")


def test_other_categories_are_not_taken_over(recogniser, trained):
    model = sarb.load_model(trained)
    model.categories = ("one", "two", "three", "four", "five")
    with pytest.raises(SarbError, match="other categories"):
        recogniser.replace(model)
