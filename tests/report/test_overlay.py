"""The overlay: cold cells leave the photo alone, hot ones cover it, sizes and limits are right."""

import io

import numpy as np
import pytest
from PIL import Image

from sarb.report.overlay import HEAT, blend, colours, limits, strip

GREY = Image.new("RGB", (60, 40), (128, 128, 128))


def corner():
    heat = np.zeros((4, 4), np.float32)
    heat[0, 0] = 1
    return heat


def test_colours_at_the_stops_and_between():
    np.testing.assert_allclose(colours(np.linspace(0, 1, len(HEAT))), HEAT)
    middle = (np.array(HEAT[0]) + HEAT[1]) / 2
    np.testing.assert_allclose(colours(np.array([0.5 / (len(HEAT) - 1)]))[0], middle)


def test_only_hot_cells_change_the_photo():
    mixed = np.asarray(blend(GREY, corner()))
    assert mixed.shape == (40, 60, 3)
    np.testing.assert_array_equal(mixed[30:, 45:], 128)
    assert mixed[2, 3].tolist() != [128, 128, 128]
    red, green, blue, opacity = HEAT[-1]
    np.testing.assert_allclose(
        mixed[0, 0], np.array([red, green, blue]) * opacity + 128 * (1 - opacity), atol=2
    )


def test_blend_does_not_touch_the_photo_and_shrinks_on_request():
    before = np.asarray(GREY).copy()
    assert blend(GREY, corner(), 30).size == (30, 20)
    assert blend(GREY, corner(), 300).size == (60, 40)
    np.testing.assert_array_equal(np.asarray(GREY), before)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0.1, 0.4], (0.1, 0.4)), ([-3, 2], (0, 2)), ([0.2, 0.2], (0.2, 1.2)), ([-2, -1], (0, 1))],
)
def test_limits(values, expected):
    assert limits(np.array([values], np.float32)) == pytest.approx(expected)


@pytest.mark.parametrize("count", [1, 3, 6])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_strip_has_a_panel_for_each_category(count, theme, monkeypatch):
    monkeypatch.setattr("sarb.report.style.DOTS_PER_INCH", 20)
    drawn = []
    import matplotlib.axes

    whole = matplotlib.axes.Axes.set_title
    monkeypatch.setattr(
        matplotlib.axes.Axes,
        "set_title",
        lambda self, text, **more: (drawn.append(text), whole(self, text, **more))[1],
    )
    panels = [(f"name {number}", number / 10, corner()) for number in range(count)]
    picture = Image.open(io.BytesIO(strip(GREY, panels, "mask", theme=theme)))
    assert drawn == [f"name {number}  {number / 10:.2f}" for number in range(count)]
    assert picture.width > picture.height
    assert picture.height > (50 if count < 5 else 100)  # a second row
