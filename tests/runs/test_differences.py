"""In which settings runs differ."""

import pytest

from sarb.runs.differences import settings_told
from sarb.runs.folder import RunFolder


@pytest.fixture
def make(tmp_path):
    def write(name, **changes):
        folder = RunFolder(tmp_path / name)
        settings = {"image_size": 320, "workers": 0, "method_options": {"folds": 5}, **changes}
        record = {"source": f"{name}.csv", "options": settings.pop("options", {}), "known": 1}
        folder.write_config({"settings": settings, "data": record})
        return name, folder

    return write


def test_the_same(make):
    assert settings_told([make("a"), make("b", workers=2)]) == "All runs have the same settings."


def test_each_difference_with_its_values(make):
    other = make("b", image_size=224, method_options={"folds": 5, "finetune": True}, options={"test": "0.3"})
    assert settings_told([make("a"), other]) == (
        "Settings that differ: image_size (a 320, b 224); method.finetune (a not set, b true); "
        "-o test (a not set, b 0.3)."
    )


def test_a_run_that_does_not_say(make, tmp_path):
    assert settings_told([make("a"), ("c", RunFolder(tmp_path / "c"))]) == ""
