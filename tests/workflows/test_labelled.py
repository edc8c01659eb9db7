"""The data of a run: read as it was trained on, and told about only once."""

import warnings

import pytest

from sarb.errors import DataNote
from sarb.runs.folder import RunFolder
from sarb.workflows.labelled import run_data
from tests.data.fixtures import write_image


@pytest.fixture
def run(tmp_path):
    """A run of a table whose column of names sarb has to find."""
    for name in "ab":
        write_image(tmp_path / f"{name}.png", size=(8, 8))
    (tmp_path / "t.csv").write_text("Datei,split,x\na.png,train,1\nb.png,test,0\n", encoding="utf-8")
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    folder.write_config({"data": {"source": str(tmp_path / "t.csv"), "options": {"encoding": "binary"}}})
    return folder.path


def notes_of(*arguments):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        data = run_data(*arguments)
    assert list(data.train.labels.paths) == ["a.png"]
    return [str(each.message) for each in found if issubclass(each.category, DataNote)]


def test_how_a_table_is_read_is_not_said_again_for_the_data_of_a_run(run):
    assert notes_of(run) == []
    (note,) = notes_of(run, str(run.parent / "t.csv"), {"encoding": "binary"})
    assert "are read from column 'Datei'" in note
