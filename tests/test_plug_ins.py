"""Names from outside the package: registered in Python, or declared by an installed package."""

import json
import sys
import types

import pytest

import sarb
from sarb.errors import ConfigError, SarbError
from sarb.registry import DATASETS, METHODS, NETWORKS, REGISTRIES, Registry, find, register, summary
from tests.documentation.tools import run


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Pretend that a package is installed: its code, and the metadata that pip would write."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(package, entry_points, **modules):
        info = tmp_path / f"{package.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entry_points)
        for name, code in modules.items():
            (tmp_path / f"{name}.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path)  # what an installer does: forget what was seen of the folder
        for registry in REGISTRIES.values():
            monkeypatch.setattr(registry, "_searched", None)

    yield make
    for name in ("plug", "broken"):
        sys.modules.pop(name, None)


@pytest.fixture
def clean():
    before = {kind: dict.copy(registry) for kind, registry in REGISTRIES.items()}
    yield
    for kind, registry in REGISTRIES.items():
        registry.clear()
        registry.update(before[kind])


class Mine:
    """A network of mine.

    More about it.
    """


# plain Python


@pytest.mark.parametrize("kind", ["network", "method", "backbone", "dataset"])
def test_register_a_class_or_an_import_string(kind, clean):
    register(kind, "mine", Mine)
    register(kind, "mine-too", f"{__name__}:Mine")
    registry = REGISTRIES[kind]
    for name in ("mine", "mine-too"):
        assert name in registry and name in list(registry) and find(kind, registry, name) is Mine
        assert summary(registry[name]) == "A network of mine."
    register(kind, "mine", "other:Thing")  # a notebook runs a cell twice
    assert registry["mine"] == "other:Thing"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("netwrk", "mine", Mine), r"unknown kind 'netwrk'\. Did you mean 'network'"),
        (("network", "ssgrl", Mine), "network 'ssgrl' is built in, choose another name"),
        (("dataset", "coco", Mine), "dataset 'coco' is built in"),
        (("network", "my net", Mine), "'my net' is not a valid name"),
        (("network", "a:b", Mine), "'a:b' is not a valid name"),
        (("method", "mine", "my_file"), "method 'mine' must be given as 'module:attribute', got 'my_file'"),
        (("method", "mine", 3), "method 'mine' must be a class, a function or 'module:attribute', got 3"),
    ],
)
def test_what_cannot_be_registered(arguments, message, clean):
    with pytest.raises(ConfigError, match=message):
        register(*arguments)
    assert "mine" not in NETWORKS and "mine" not in METHODS


def test_what_is_registered_but_not_there(clean):
    register("method", "mine", "no_such_file:Mine")
    with pytest.raises(
        SarbError, match="method 'mine' cannot be imported from 'no_such_file:Mine': ModuleNot"
    ):
        find("method", METHODS, "mine")


def test_an_unknown_name_says_how_to_register_it():
    with pytest.raises(ConfigError, match=r"unknown network 'mine'.*register\('network', 'mine', \.\.\.\)"):
        find("network", NETWORKS, "mine")


def test_a_reader_is_found_by_load(clean):
    def load_nothing(*, size: int = 3):
        """Read nothing."""
        return size

    register("dataset", "nothing", load_nothing)
    assert sarb.load("nothing", size="7") == 7
    assert sarb.DATASETS is DATASETS


def test_a_registry_is_a_dict():
    registry = Registry("network", {"a": "x:A"})
    assert isinstance(registry, dict) and dict(registry) == {**registry} == {"a": "x:A"}
    assert list(registry) == list(registry.keys()) == ["a"] and len(registry) == 1
    assert list(registry.items()) == [("a", "x:A")] and list(registry.values()) == ["x:A"]
    assert registry.get("a") == "x:A" and registry.get("b") is None and repr(registry) == "{'a': 'x:A'}"
    assert json.dumps(registry) == '{"a": "x:A"}'
    with pytest.raises(KeyError):
        registry["b"]


# installed packages

PLUG = '''
"""A module."""

class Net:
    """A network from elsewhere."""

class Bare:
    pass
'''


def test_entry_points_are_found_without_being_imported(install):
    assert "net" not in NETWORKS
    install("sarb-plug", "[sarb.networks]\nnet = plug:Net\nbare = plug:Bare\n", plug=PLUG)
    assert "net" in NETWORKS and "net" in list(NETWORKS) and NETWORKS["net"] == "plug:Net"
    assert dict(NETWORKS)["net"] == "plug:Net" and len(NETWORKS) == len(NETWORKS.built_in) + 2
    assert summary(NETWORKS["net"]) == "A network from elsewhere." and summary("plug:Bare") == "A module."
    assert "plug" not in sys.modules
    assert find("network", NETWORKS, "net").__name__ == "Net"
    assert "net" not in METHODS


def test_the_command_line_lists_them(install, monkeypatch, capsys):
    install("sarb-plug", "[sarb.networks]\nnet = plug:Net\n", plug=PLUG)
    assert run(["sarb", "list", "networks"], monkeypatch) == 0
    said = capsys.readouterr().out
    assert "ssgrl" in said and "A network from elsewhere." in said


def test_a_broken_plug_in_is_named_when_it_is_used(install, monkeypatch, capsys):
    install("sarb-broken", "[sarb.networks]\nnet = broken:Net\n", broken="raise OSError('no disk')\n")
    assert "net" in NETWORKS and summary(NETWORKS["net"]) == ""
    with pytest.raises(SarbError) as error:
        find("network", NETWORKS, "net")
    assert str(error.value) == (
        "plug-in package 'sarb-broken': network 'net' cannot be imported from 'broken:Net': OSError: no disk"
    )
    assert run(["sarb", "train", "--data", "demo", "--network", "net"], monkeypatch) == 2
    assert "plug-in package 'sarb-broken'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ssgrl = plug:Net", "'sarb-plug': network 'ssgrl' is built in"),
        ("net = plug", "'sarb-plug': network 'net' must be given as 'module:attribute', got 'plug'"),
    ],
)
def test_entry_points_that_are_refused(install, line, message):
    install("sarb-plug", f"[sarb.networks]\n{line}\n", plug=PLUG)
    assert "ssgrl" in NETWORKS and find("network", NETWORKS, "ssgrl").__name__ == "SSGRL"
    with pytest.raises(ConfigError, match=message):
        list(NETWORKS)
    assert "sarb" in list(METHODS)


def test_two_packages_with_one_name(install, tmp_path):
    install("sarb-plug", "[sarb.networks]\nnet = plug:Net\n", plug=PLUG)
    install("sarb-other", "[sarb.networks]\nnet = plug:Bare\n")
    with pytest.raises(ConfigError, match=r"package 'sarb-.*' also declares network 'net'"):
        list(NETWORKS)


def test_what_is_registered_comes_before_a_plug_in(install, clean):
    install("sarb-plug", "[sarb.networks]\nnet = plug:Net\n", plug=PLUG)
    register("network", "net", Mine)
    assert find("network", NETWORKS, "net") is Mine and list(NETWORKS).count("net") == 1


def test_without_source_there_is_no_summary(install, monkeypatch):
    install("sarb-broken", "", broken="def")
    monkeypatch.setitem(sys.modules, "handmade", types.ModuleType("handmade"))
    targets = ("no_such:A", "handmade:A", "broken:A", "itertools:count", "sys:A", "json.no_such:A")
    assert [summary(target) for target in targets] == [""] * len(targets)
    assert summary("json.decoder:JSONDecoder") == "Simple JSON <https://json.org> decoder"
    assert summary("json:loads").startswith("Deserialize")
