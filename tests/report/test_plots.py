"""Every picture is a PNG with something in it, for one category, for some, and for many."""

import io

import numpy as np
import pytest
from PIL import Image

from sarb.metrics import per_category
from sarb.report import plots
from tests.report.conftest import make_case, names


def colours(picture):
    """Number of different colours of a PNG."""
    with Image.open(io.BytesIO(picture)) as image:
        assert image.format == "PNG" and min(image.size) > 100
        return len(image.convert("RGB").getcolors(maxcolors=1 << 24))


def corner(picture):
    with Image.open(io.BytesIO(picture)) as image:
        return image.convert("RGB").getpixel((0, 0))


@pytest.mark.parametrize("count", [1, 20, 200])
def test_every_plot_has_many_colours(count):
    scores, labels = make_case(count, 40)
    assert colours(plots.per_category_ap(per_category(scores.logits, labels))) > 20
    assert colours(plots.precision_recall_curves(scores.logits, labels, labels.categories)) > 20
    assert colours(plots.cooccurrence(labels.cooccurrence(), labels.categories)) > 20


def test_dark_theme_is_dark():
    rows = per_category([[1.0], [0.0]], [[1], [-1]])
    assert corner(plots.per_category_ap(rows)) == (255, 255, 255)
    assert max(corner(plots.per_category_ap(rows, theme="dark"))) < 60


def test_the_length_of_a_bar_follows_the_ap():
    def blue(ap):
        row = {"category": "cat", "AP": ap, "positives": 3}
        with Image.open(io.BytesIO(plots.per_category_ap([row]))) as image:
            pixels = np.asarray(image.convert("RGB")).astype(int)
        return np.count_nonzero(pixels[..., 2] - pixels[..., 0] > 100)

    assert blue(80.0) == pytest.approx(2 * blue(40.0), rel=0.05)


def test_nothing_known_is_said_not_drawn():
    scores, labels = np.zeros((4, 2)), np.zeros((4, 2), int)
    assert colours(plots.precision_recall_curves(scores, labels, ["a", "b"])) > 5
    assert colours(plots.per_category_ap(per_category(scores, labels, ["a", "b"]))) > 5


def test_cooccurrence_puts_what_goes_together_together():
    graph = np.full((6, 6), 0.02)
    for theme in ([0, 2, 4], [1, 3, 5]):
        graph[np.ix_(theme, theme)] = 0.8
    order = plots._similar_together(graph).tolist()
    assert {frozenset(order[:3]), frozenset(order[3:])} == {frozenset({0, 2, 4}), frozenset({1, 3, 5})}
    assert sorted(plots._similar_together(np.eye(2)).tolist()) == [0, 1]


def test_comparison_bars_with_an_undefined_number():
    assert (
        colours(plots.comparison_bars(names(3), {"mAP": [1.0, 50.0, float("nan")], "OF1": [10, 20, 30]})) > 20
    )
