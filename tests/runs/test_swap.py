"""A folder is replaced in one step, or brought back."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from sarb.errors import SarbError
from sarb.files import atomic_write
from sarb.runs import swap
from sarb.runs.lookup import find_run
from sarb.runs.swap import atomic_folder, exchange, recover


def fill(folder: Path, text: str) -> None:
    with atomic_folder(folder) as partial:
        (partial / "a.txt").write_text(text)


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture(params=["exchange", "aside"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Replace by an exchange, and as where the system has none."""
    if request.param == "aside":
        monkeypatch.setattr(swap, "exchange", lambda one, other: False)
    return str(request.param)


def test_a_new_folder_takes_the_place_of_the_old_one(tmp_path: Path, way: str) -> None:
    fill(tmp_path / "new" / "model", "first")
    fill(tmp_path / "new" / "model", "second")
    assert (tmp_path / "new" / "model" / "a.txt").read_text() == "second"
    assert names(tmp_path / "new") == ["model"]


def test_a_failure_leaves_the_old_one_and_nothing_else(tmp_path: Path, way: str) -> None:
    fill(tmp_path / "model", "first")
    with pytest.raises(KeyboardInterrupt), atomic_folder(tmp_path / "model") as partial:
        (partial / "a.txt").write_text("half")
        raise KeyboardInterrupt
    assert (tmp_path / "model" / "a.txt").read_text() == "first" and names(tmp_path) == ["model"]


def test_an_error_names_the_final_file(tmp_path: Path) -> None:
    with pytest.raises(OSError) as raised, atomic_folder(tmp_path / "model") as partial:
        (partial / "a.txt").mkdir()
        (partial / "a.txt").write_text("")
    assert raised.value.filename == str(tmp_path / "model" / "a.txt")


def test_a_link_to_a_folder_stays(tmp_path: Path, way: str) -> None:
    fill(tmp_path / "disk" / "model", "first")
    (tmp_path / "model").symlink_to("disk/model")
    fill(tmp_path / "model", "second")
    assert (tmp_path / "model").is_symlink()
    assert (tmp_path / "disk" / "model" / "a.txt").read_text() == "second"
    assert names(tmp_path / "disk") == ["model"]


def test_permissions_are_those_of_the_old_folder_or_of_the_umask(tmp_path: Path, way: str) -> None:
    before = os.umask(0o027)
    try:
        fill(tmp_path / "model", "first")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == 0o750
    (tmp_path / "model").chmod(0o700)
    fill(tmp_path / "model", "second")
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == 0o700


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("mine")
    with pytest.raises(SarbError, match="model: is not a folder"):
        fill(tmp_path / "model", "x")
    assert (tmp_path / "model").read_text() == "mine"


def test_linux_exchanges_in_one_step(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "was").write_text(name)
    assert exchange(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "a" / "was").read_text() == "b" and (tmp_path / "b" / "was").read_text() == "a"
    assert not exchange(tmp_path / "a", tmp_path / "none")


def killed_between(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Replace a folder the other way, and stop after the old one has stepped aside."""
    monkeypatch.setattr(swap, "exchange", lambda one, other: False)
    rename = Path.rename

    def stop(path: Path, target: Path) -> Path:
        if target == folder:
            raise KeyboardInterrupt
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", stop)
        with pytest.raises(KeyboardInterrupt):
            fill(folder, "second")
    assert not folder.exists()


def test_a_folder_that_stepped_aside_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "run" / "model"
    fill(model, "first")
    killed_between(monkeypatch, model)
    find_run(tmp_path / "run")
    assert (model / "a.txt").read_text() == "first" and names(tmp_path / "run") == ["model"]


def test_the_next_save_finds_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "model", "first")
    killed_between(monkeypatch, tmp_path / "model")
    fill(tmp_path / "model", "third")
    assert (tmp_path / "model" / "a.txt").read_text() == "third" and names(tmp_path) == ["model"]


def test_an_old_folder_beside_its_successor_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "model", "first")
    killed_between(monkeypatch, tmp_path / "model")
    (aside,) = tmp_path.iterdir()
    shutil.copytree(aside, tmp_path / "model")
    recover(tmp_path / "model")
    assert names(tmp_path) == ["model"]


def test_files_in_it_are_written_as_everywhere(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "model") as partial, atomic_write(partial / "a.txt") as file:
        file.write("x")
    assert names(tmp_path / "model") == ["a.txt"]
