"""The run folder: its configuration, tables, and whose calibration applies."""

import pytest

from sarb.errors import SarbError
from sarb.files import read_json
from sarb.runs.checkpoint import State
from sarb.runs.folder import RunFolder

# the same run


def config(**changes):
    settings = {"lr": 0.1, "epochs": 3, "method": "sarb", **changes}
    return {"settings": settings, "data": {"images": 5, "labels": "abc"}, "versions": {"torch": "1"}}


def test_the_same_run_may_resume(tmp_path):
    RunFolder(tmp_path).write_config(config())
    assert read_json(tmp_path / "config.json") == config()
    RunFolder(tmp_path).check_same({**config(), "versions": {"torch": "2"}, "threads": 4})


def test_each_difference_is_listed(tmp_path):
    RunFolder(tmp_path).write_config(config(gone=1))
    now = config(lr=0.2, method="partial_bce", new=True)
    now["data"]["labels"] = "xyz"
    with pytest.raises(SarbError) as error:
        RunFolder(tmp_path).check_same(now)
    head, *lines = str(error.value).splitlines()
    assert str(tmp_path) in head and "cannot resume" in head
    assert [line.strip() for line in lines] == [
        "gone: was 1, now None",
        "lr: was 0.1, now 0.2",
        "method: was 'sarb', now 'partial_bce'",
        "new: was None, now True",
        "labels: was 'abc', now 'xyz'",
    ]


def test_values_that_json_changes_are_no_difference(tmp_path):
    RunFolder(tmp_path).write_config(config(method_options={"sizes": (1, 2)}))
    RunFolder(tmp_path).check_same(config(method_options={"sizes": (1, 2)}))


@pytest.mark.parametrize("content", [None, "{half"])
def test_a_missing_or_broken_config_is_named(tmp_path, content):
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(SarbError, match=r"config\.json"):
        RunFolder(tmp_path).check_same(config())


# tables


def test_tables_of_a_run_that_skipped_something(tmp_path):
    rows = [{"file_name": 'a "b".jpg', "reason": "a.jpg: broken, sadly", "split": "train"}]
    state = State(2, log=[{"epoch": 0}, {"epoch": 1}], steps=[0.5, None, 0.25, 0.125], skipped=rows)
    RunFolder(tmp_path).write_tables(state.log, state.step_rows(), state.skipped)
    assert RunFolder(tmp_path).errors() == rows
    assert (tmp_path / "steps.csv").read_text().split() == [
        "step,epoch,loss",
        "0,0,0.5",
        "1,0,",
        "2,1,0.25",
        "3,1,0.125",
    ]
    state.skipped = []
    RunFolder(tmp_path).write_tables(state.log, state.step_rows(), state.skipped)
    assert RunFolder(tmp_path).errors() == [] and not (tmp_path / "errors.csv").exists()
