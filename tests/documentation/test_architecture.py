"""The architecture page names every folder and root module, and each folder's docstring names its modules."""

import ast
import re

import pytest

from tests.documentation.tools import ROOT

PACKAGE = ROOT / "src" / "sarb"
PAGE = ROOT / "docs" / "architecture.md"
FOLDERS = sorted(file.parent for file in PACKAGE.rglob("__init__.py") if file.parent != PACKAGE)


def map_entries():
    """What the first column of the map names."""
    rows = re.findall(r"^\| ((?:`[^`]+` ?)+)\|", PAGE.read_text(encoding="utf-8"), re.M)
    return {name.rstrip("/") for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_the_map_names_every_folder_and_root_module():
    folders = {entry.name for entry in PACKAGE.iterdir() if entry.is_dir() and entry.name != "__pycache__"}
    assert map_entries() == folders | {file.name for file in PACKAGE.glob("*.py")}


def test_the_root_is_short():
    assert len(list(PACKAGE.glob("*.py"))) <= 14


def test_the_page_fits_two_screens():
    assert len(PAGE.read_text(encoding="utf-8").splitlines()) <= 110


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(PACKAGE)))
def test_each_folder_names_its_modules(folder):
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
    named = re.findall(r"^(\w+/?)\s{2,}\S", text, re.M)
    modules = {file.stem for file in folder.glob("*.py") if not file.stem.startswith("__")}
    folders = {f"{entry.name}/" for entry in folder.iterdir() if entry.is_dir() and entry.name[0] != "_"}
    assert set(named) == modules | folders
