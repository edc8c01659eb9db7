"""Is one picture a part of another?"""

import numpy as np
import pytest
from PIL import Image

from sarb.health.alignment import GRID, _shrink, compare, windows
from sarb.health.looks import SMALL
from tests.health.pictures import picture


def small(image):
    return np.asarray(image.convert("L").resize((SMALL, SMALL), Image.Resampling.BOX))


def test_shrink_averages_pixels():
    values = np.arange(SMALL, dtype=np.float32)
    halves = _shrink(0, 1) @ values
    assert halves == pytest.approx(values.reshape(GRID, SMALL // GRID).mean(1), rel=1e-5)
    part = _shrink(0.5, 1) @ values
    assert part[0] == pytest.approx(SMALL / 2 + (SMALL / 2 / GRID - 1) / 2, abs=0.3)
    assert part.mean() == pytest.approx(values[SMALL // 2 :].mean(), rel=1e-4)


def test_a_window_is_the_shrunk_part_of_the_picture():
    whole = small(picture(3))
    found = windows(whole)
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(len(found)), abs=1e-4)
    cells = _shrink(0, 1) @ whole.astype(np.float32) @ _shrink(0, 1).T
    slopes = np.concatenate([np.diff(cells, axis=0).ravel(), np.diff(cells, axis=1).ravel()])
    assert found[0] == pytest.approx(slopes / np.linalg.norm(slopes), abs=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_the_same_picture_is_recognised(seed):
    whole = picture(seed)
    for changed in (whole.resize((70, 90)), whole.crop((6, 0, 121, 115)), whole.crop((13, 13, 128, 128))):
        match = compare(small(whole), small(changed))
        assert match.correlation > 0.75 and not match.mirrored
        assert compare(small(changed), small(whole)) == match


def test_a_mirrored_picture_is_recognised():
    whole = picture(5)
    match = compare(small(whole), small(whole.transpose(Image.Transpose.FLIP_LEFT_RIGHT)))
    assert match.correlation == pytest.approx(1, abs=1e-3) and match.mirrored


def test_other_pictures_do_not_fit():
    assert max(compare(small(picture(0)), small(picture(seed))).correlation for seed in range(1, 9)) < 0.5


def test_a_flat_picture_fits_nothing():
    flat = np.full((SMALL, SMALL), 80, np.uint8)
    assert compare(flat, flat).correlation == 0
