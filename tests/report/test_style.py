"""One style, and nothing of it stays behind."""

import subprocess
import sys

import pytest

from sarb.errors import SarbError
from sarb.report.style import THEMES, short, style


def test_settings_come_back_after_drawing():
    import matplotlib

    before = dict(matplotlib.rcParams)
    with style("dark") as colours:
        assert matplotlib.rcParams["figure.facecolor"] == colours.background == THEMES["dark"].background
    assert dict(matplotlib.rcParams) == before


def test_an_unknown_theme_names_the_known_ones():
    with pytest.raises(SarbError, match="Did you mean 'dark'"), style("drak"):
        pass


def test_short():
    assert short("cat") == "cat"
    assert short("a very long name", 10) == "a very lo…"
    assert short("two\nlines") == "two lines"


def test_report_is_a_light_import():
    code = (
        "import sys, sarb.report; assert not {'torch', 'matplotlib', 'sklearn'} & set(sys.modules), 'heavy'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_pyplot_is_never_imported():
    code = (
        "import sys; from sarb.report.plots import comparison_bars; comparison_bars(['a'], {'mAP': [1.0]});"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
