"""Whether another computer sees the same folders."""

import dataclasses
import os
from pathlib import Path

from sarb.jobs.place import JOBS, marked


def test_a_job_finds_the_same_folder_and_variables(tmp_path, monkeypatch):
    monkeypatch.setenv("SARB_EXAMPLE", "7")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.chdir(tmp_path)
    with marked(tmp_path / "out") as place:
        assert place.variables["HF_HUB_OFFLINE"] == "1" and "HF_TOKEN" not in place.variables
        monkeypatch.delenv("SARB_EXAMPLE")
        monkeypatch.chdir("/")
        assert place.enter() == ""
        assert (str(Path.cwd()), os.environ["SARB_EXAMPLE"]) == (str(tmp_path), "7")
    assert not (tmp_path / "out" / JOBS).exists()


def test_what_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with marked(tmp_path) as place:
        assert (
            "cannot see the current folder /nowhere of"
            in dataclasses.replace(place, current="/nowhere").enter()
        )
        other = dataclasses.replace(place, text="of another computer").enter()
        assert f"cannot see the folder {tmp_path} of {place.host}" in other
        assert "a file system that all of them share" in other


def test_marks_of_a_killed_command_are_removed(tmp_path):
    (tmp_path / JOBS).mkdir()
    (tmp_path / JOBS / "here-00000000.txt").touch()
    with marked(tmp_path):
        assert len([*(tmp_path / JOBS).iterdir()]) == 1
    assert not (tmp_path / JOBS).exists()
