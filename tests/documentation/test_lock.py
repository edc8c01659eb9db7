"""requirements.lock pins what constraints.txt says, with hashes, and two builds give the same bytes."""

import importlib.util
import re
import tomllib

import pytest

from tests.documentation.tools import ROOT


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture(scope="module")
def locked():
    found = script("lock").entries((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    return {plain(name): entry for name, entry in found.items()}


def test_the_lock_has_the_versions_of_the_constraints_and_hashes_for_all(locked):
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    pinned = {plain(name): version for name, version in pins.items()}
    assert {name: version for name, (version, _) in locked.items()}.items() <= pinned.items()
    assert all(hashes for _, hashes in locked.values())
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert text.count("==") == len(locked), "a line that is no entry"
    assert "://" not in text, "a lock names no place"


def test_the_lock_is_complete_for_the_project(locked):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    asked = [
        *project["dependencies"],
        *extras["dev"][1:],
        *tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"],
    ]
    for extra in re.findall(r"\w+", extras["dev"][0].partition("[")[2]):
        asked += extras[extra]
    names = {plain(re.match(r"[\w.-]+", line)[0]) for line in asked}
    assert names <= locked.keys(), f"run make lock: {names - locked.keys()}"


def test_pytorch_may_be_the_cpu_build_or_that_of_the_index(locked):
    assert len(locked["torch"][1]) > 1
    assert not [name for name in locked if name.startswith(("nvidia", "cuda", "triton"))]


def test_two_builds_are_the_same_bytes(capsys):
    assert script("same_wheel").main() == 0
    said = capsys.readouterr().out
    assert said.count("identical") == 2 and ".whl" in said and ".tar.gz" in said
