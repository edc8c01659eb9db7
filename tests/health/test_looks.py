"""One look at an image file."""

import numpy as np
import pytest
from PIL import Image, ImageFilter

from sarb.health.looks import SMALL, look, look_at_all, sharpness
from sarb.progress import Progress
from tests.health.pictures import picture


def edge(width, side=64):
    """A vertical edge that rises evenly over ``width`` pixels."""
    return np.tile(np.clip((np.arange(side) - side // 2) / width, 0, 1) * 200, (side, 1)).astype(np.float32)


def test_sharpness_is_the_largest_share_of_a_step():
    assert sharpness(edge(1)) == pytest.approx(1)
    assert sharpness(edge(2)) == pytest.approx(1 / 2)
    assert sharpness(edge(8)) == pytest.approx(1 / 4)
    assert sharpness(edge(20)) == pytest.approx(1 / 4)


def test_sharpness_knows_both_directions_and_no_contrast():
    assert sharpness(edge(1).T) == sharpness(edge(1))
    assert sharpness(edge(1) / 5) == pytest.approx(sharpness(edge(1)))
    assert np.isnan(sharpness(np.full((32, 32), 90, np.float32)))
    assert np.isnan(sharpness(np.zeros((3, 3), np.float32)))


def test_a_sharp_subject_makes_a_sharp_photo():
    whole = picture(0).convert("L")
    blurred = whole.filter(ImageFilter.GaussianBlur(4))
    subject = blurred.copy()
    subject.paste(whole.crop((40, 40, 90, 90)), (40, 40))
    measured = [sharpness(np.asarray(image, np.float32)) for image in (whole, subject, blurred)]
    assert measured[0] > 0.7 and measured[1] > 0.7 and measured[2] < 0.4


def test_look(tmp_path):
    Image.new("RGB", (300, 40), (51, 51, 51)).save(tmp_path / "flat.png")
    found = look(tmp_path / "flat.png")
    assert found.side == 40 and found.small.shape == (SMALL, SMALL)
    assert found.light == found.shade == pytest.approx(0.2)
    assert np.isnan(found.sharpness)
    assert found.contrast == 0 and not found.colours.any()


def test_a_shape_of_the_same_luminance_is_a_contrast(tmp_path):
    drawing = Image.new("RGB", (96, 96), (128, 128, 128))
    drawing.paste((255, 66, 128), (40, 40, 56, 56))
    drawing.save(tmp_path / "drawing.png")
    found = look(tmp_path / "drawing.png")
    assert found.light - found.shade < 0.02 and found.contrast == pytest.approx(127 / 255, abs=0.01)
    red = Image.new("RGB", (96, 96), (200, 50, 50))
    red.save(tmp_path / "red.png")
    assert look(tmp_path / "red.png").colours[2, 1] == pytest.approx([100, -50, -50], abs=1)


def test_same_bytes_have_the_same_digest(tmp_path):
    picture(1).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes((tmp_path / "a.png").read_bytes())
    picture(2).save(tmp_path / "c.png")
    a, b, c = (look(tmp_path / f"{name}.png").digest for name in "abc")
    assert a == b != c


def test_unreadable_images_give_a_reason(tmp_path):
    picture(0).save(tmp_path / "good.png")
    (tmp_path / "bad.jpg").write_bytes(b"no image")
    paths = [tmp_path / "bad.jpg", tmp_path / "good.png", tmp_path / "none.jpg"]
    bad, good, missing = look_at_all(paths, Progress(False))
    assert "bad.jpg: not an image" in bad and "none.jpg: no such file" in missing
    assert good.side == 128
