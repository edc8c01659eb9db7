"""Exact and near duplicates, and which of a pair is to be fixed."""

import numpy as np
from PIL import Image, ImageOps

from sarb.health.duplicates import exact_duplicates, near_duplicates, recoloured
from sarb.health.looks import SMALL, Look, mean_colours
from sarb.health.neighbours import Nearest
from sarb.progress import Progress
from tests.health.images import images
from tests.health.pictures import picture
from tests.health.test_alignment import small


def pairs(findings):
    return [(found.file_name, found.other_file) for found in findings]


def test_exact_duplicates_are_paired_with_the_first_and_the_training_image_is_to_be_fixed():
    data = images(["train", "train", "train", "valid", "test"])
    found = exact_duplicates(data, [b"a", b"b", b"a", b"c", b"a"])
    assert pairs(found) == [("0.jpg", "4.jpg"), ("2.jpg", "4.jpg")]
    assert all(item.leaks and "leakage" in item.detail for item in found)


def test_contradicting_labels_are_named_and_unknown_ones_are_not():
    data = images(["train", "train"], [[1, 0], [-1, 1]])
    (found,) = exact_duplicates(data, [b"a", b"a"])
    assert found.detail == "same bytes; labels differ: cat" and not found.leaks


def seen(image, digest):
    """A look at a picture that is not in a file."""
    tones = np.asarray(image.resize((SMALL, SMALL)), np.float32)
    return Look(digest, 128, 1.0, 1.0, 0.0, small(image), 1.0, mean_colours(tones))


def near(data, digests, pictures, rows, cosines):
    similar = Nearest(np.array(rows), np.array(cosines, np.float32))
    return near_duplicates(data, [*map(seen, pictures, digests)], similar, Progress(False))


def test_near_duplicates_need_features_and_pixels():
    whole, cut, other = picture(0), picture(0).crop((6, 6, 120, 120)), picture(1)
    data = images(["test", "train", "train"])
    digests = [b"a", b"b", b"c"]
    found = near(data, digests, [whole, cut, other], [[1], [0], [0]], [[0.9], [0.9], [0.9]])
    assert pairs(found) == [("1.jpg", "0.jpg")] and found[0].leaks
    assert near(data, digests, [whole, cut, other], [[1], [0], [0]], [[0.2], [0.2], [0.9]]) == []


def test_a_copy_of_a_copy_is_not_compared_again():
    whole, cut = picture(0), picture(0).resize((64, 64))
    data = images(["train"] * 3)
    found = near(data, [b"a", b"a", b"b"], [whole, whole, cut], [[1, 2], [0, 2], [0, 1]], [[1, 0.9]] * 3)
    assert pairs(found) == [("0.jpg", "2.jpg")]


def striped(colour):
    """White stripes on a colour."""
    pixels = np.full((96, 96, 3), colour, np.uint8)
    pixels[:, np.arange(96) // 12 % 2 == 0] = 255
    return Image.fromarray(pixels)


def test_stripes_in_another_colour_are_another_picture():
    red, blue, darker = striped((200, 0, 0)), striped((0, 0, 200)), striped((160, 10, 0))
    data = images(["train"] * 3)
    everyone = [[1, 2], [0, 2], [0, 1]]
    found = near(data, [b"a", b"b", b"c"], [red, blue, darker], everyone, [[0.9, 0.9]] * 3)
    assert pairs(found) == [("0.jpg", "2.jpg")]


def test_a_grey_copy_and_a_mirrored_one_keep_their_colours():
    whole = picture(0)
    look, grey, turned = (
        seen(image, b"") for image in (whole, whole.convert("L").convert("RGB"), ImageOps.mirror(whole))
    )
    assert not recoloured(look, grey, False) and not recoloured(look, turned, True)
    assert recoloured(look, seen(ImageOps.invert(whole), b""), False)
