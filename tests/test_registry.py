"""Registries hold import strings; nothing heavy is loaded before it is used."""

import inspect
import subprocess
import sys

import pytest

from sarb.errors import ConfigError
from sarb.registry import BACKBONES, METHODS, NETWORKS, find, summary
from tests.waiting import PATIENCE


def loaded_after(code):
    """Run code in a fresh interpreter; return which of the heavy packages it imported."""
    check = (
        "\nimport sys; print('loaded:', *(n for n in ('torch', 'matplotlib', 'sklearn') if n in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code + check], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].removeprefix("loaded:").split()


@pytest.mark.parametrize(
    ("kind", "registry", "name"),
    [
        (kind, registry, name)
        for kind, registry in (("network", NETWORKS), ("method", METHODS), ("backbone", BACKBONES))
        for name in registry
    ],
)
def test_every_name_leads_to_something_callable_with_a_summary(kind, registry, name):
    assert callable(find(kind, registry, name))
    module = inspect.getmodule(find(kind, registry, name))
    assert summary(registry[name]) == module.__doc__.split("\n")[0] != ""


def test_a_wrong_name_lists_the_right_ones():
    with pytest.raises(ConfigError) as error:
        find("network", NETWORKS, "sgrl")
    assert str(error.value).startswith(
        "unknown network 'sgrl'. Did you mean 'ssgrl'? Available: gcn_ml, kggr, pooled, probe, ssgrl"
    )


@pytest.mark.parametrize(
    "code",
    [
        "import sarb; sarb.load; sarb.LabelMatrix; sarb.Targets; sarb.DATASETS; sarb.METHODS; sarb.ROWS; dir(sarb)",
        "import sarb.labels, sarb.metrics, sarb.scores, sarb.data, sarb.data.images",
        "import sarb.data.readers.table, sarb.data.words",
        "import sarb; sarb.LabelMatrix([[1, 0]], ['a', 'b']).hide(0.5).cooccurrence(1.0)",
        "import sarb; sarb.Scores; sarb.Report",
    ],
)
def test_light_import(code):
    assert loaded_after(code) == []


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["train", "--help"], ["list", "rows"]])
def test_light_command_line(arguments):
    code = f"""
import sys
sys.argv = ["sarb", *{arguments!r}]
from sarb.cli.app import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""
    assert loaded_after(code) == []


def test_summary_imports_nothing_heavy():
    targets = [NETWORKS["ssgrl"], METHODS["sarb"], BACKBONES["tiny"]]
    assert loaded_after(f"from sarb.registry import summary; assert all(map(summary, {targets!r}))") == []
