"""The figures: files, lines, and what they show."""

import numpy as np
import pytest

from sarb.report.style import style
from sarb.reproduce.figures import draw_losses, draw_shares, loss_figure, share_figures
from tests.documentation.tools import coarse_pictures
from tests.reproduce.hand import SMALL, results

ROWS = ["SSGRL", "KGGR", "Pooled", "Ours"]


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    coarse_pictures(monkeypatch)


def solid(axes):
    return [line for line in axes.get_lines() if line.get_marker() == "o"]


@pytest.mark.parametrize("paper", [None, "coco2014"])
def test_one_line_per_method_and_a_panel_for_the_published(tmp_path, paper):
    with style() as colours:
        axes, *beside = draw_shares(results(tmp_path, *SMALL), "hand", ROWS, "mAP", paper, colours).axes
        assert len(solid(axes)) == 4 and axes.get_title(loc="left") + axes.get_title() == "hand"
        legend = [text.get_text() for text in (beside or [axes])[-1].get_legend().get_texts()]
        assert legend == ROWS
        ours = solid(axes)[-1]
        assert ours.get_xdata().tolist() == [10, 50] and ours.get_ydata().tolist() == [52, 61]
        pooled = solid(axes)[2]
        assert 100 not in pooled.get_xdata(), "all labels known is no proportion of the figure"
        assert len(beside) == (1 if paper else 0)
        for panel in beside:  # the paper has no pooled row
            assert [line.get_color() for line in solid(panel)] == [
                solid(axes)[place].get_color() for place in (0, 1, 3)
            ]
            assert solid(panel)[-1].get_ydata()[0] == 71.2 and len(solid(panel)[-1].get_xdata()) == 9


def test_png_and_pdf_are_written(tmp_path):
    made = share_figures(results(tmp_path, *SMALL), "hand", ROWS, None, tmp_path / "figures")
    files = [file for pair in made.values() for file in pair]
    files += loss_figure({"with": np.arange(9.0), "without": np.ones(9)}, "hand", tmp_path / "figures")
    assert sorted(file.name for file in files) == sorted(
        f"{stem}.{kind}"
        for stem in ("mAP-by-share", "OF1-by-share", "CF1-by-share", "loss")
        for kind in ("png", "pdf")
    )
    for file in files:
        assert file.read_bytes().startswith(b"\x89PNG" if file.suffix == ".png" else b"%PDF")


def test_two_trainings_two_colours_and_their_steadiness():
    with style() as colours:
        values = np.array([5.0, 5, 5, 5, 1, 2, 1, 4])
        (axes,) = draw_losses({"with PLRB": values, "without PLRB": values * 2}, "hand", colours).axes
        assert len(axes.get_lines()) == 4 and len({line.get_color() for line in axes.get_lines()}) == 2
        first, second = (text.get_text() for text in axes.get_legend().get_texts())
        assert "±1.633" in first and "±3.266" in second and "81.6 % of the mean" in first
