import io
import json
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sarb.data import images
from sarb.data.images import EvalTransform, TrainTransform, decode, find_images
from sarb.errors import ImageError

#: 2 rows × 3 columns, every pixel different
PIXELS = np.array([[[255, 0, 0], [0, 255, 0], [0, 0, 255]], [[255, 255, 0], [0, 0, 0], [255, 255, 255]]], np.uint8)


def encoded(image, kind, **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def array(source, **options):
    image = decode(source, **options)
    assert image.mode == "RGB"
    return np.asarray(image)


@pytest.mark.parametrize("kind", ["PNG", "BMP", "PPM", "TIFF", "GIF", "WEBP"])
def test_lossless_formats(kind):
    options = {"lossless": True} if kind == "WEBP" else {}
    assert np.array_equal(array(encoded(Image.fromarray(PIXELS), kind, **options)), PIXELS)


def test_every_kind_of_source(tmp_path):
    path = tmp_path / "a.png"
    Image.fromarray(PIXELS).save(path)
    with path.open("rb") as file:
        assert np.array_equal(array(file), PIXELS)
    with Image.open(path) as unread:
        assert np.array_equal(array(unread), PIXELS)
    for source in (path, str(path), path.read_bytes(), io.BytesIO(path.read_bytes()), Image.fromarray(PIXELS), PIXELS):
        assert np.array_equal(array(source), PIXELS)


def test_jpeg_and_mpo():
    smooth = Image.fromarray(np.full((16, 16, 3), (200, 100, 50), np.uint8))
    for data in (encoded(smooth, "JPEG"), encoded(smooth, "MPO", save_all=True, append_images=[smooth])):
        assert np.abs(array(data).astype(int) - (200, 100, 50)).max() <= 3


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "TIFF", "JPEG"])
def test_exif_orientation(kind, orientation):
    # how a camera stores an upright picture under each code: the stored rows, from the EXIF table
    stored = {
        1: PIXELS,
        2: PIXELS[:, ::-1],
        3: PIXELS[::-1, ::-1],
        4: PIXELS[::-1],
        5: PIXELS.transpose(1, 0, 2),
        6: np.rot90(PIXELS),
        7: PIXELS[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(PIXELS, -1),
    }[orientation]
    large = np.ascontiguousarray(stored).repeat(16, 0).repeat(16, 1)
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"quality": 95, "subsampling": 0} if kind == "JPEG" else {}
    result = array(encoded(Image.fromarray(large), kind, exif=exif, **options))[8::16, 8::16]
    assert result.shape == PIXELS.shape
    assert np.abs(result.astype(int) - PIXELS).max() <= (8 if kind == "JPEG" else 0)


def test_damaged_exif_does_not_matter(monkeypatch):
    def broken(self):
        raise SyntaxError("bad tag")

    monkeypatch.setattr(Image.Image, "getexif", broken)
    assert np.array_equal(array(PIXELS), PIXELS)


def test_sixteen_bits_are_scaled():
    deep = np.array([[0, 257, 65535], [128, 129, 30000]], np.uint16)
    expected = np.array([[0, 1, 255], [0, 1, 117]])
    for kind in ("PNG", "TIFF"):
        assert np.array_equal(array(encoded(Image.fromarray(deep), kind))[:, :, 0], expected)
    assert np.array_equal(array(deep)[:, :, 2], expected)
    assert np.array_equal(array(Image.fromarray(deep.astype(np.int32)))[:, :, 1], expected)
    with pytest.raises(ImageError, match="more than 16 bits"):
        decode(Image.fromarray(deep.astype(np.int32) * 2))
    with pytest.raises(ImageError, match="floating-point"):
        decode(Image.fromarray(deep.astype(np.float32)))


def test_transparency_is_laid_on_white():
    alpha = np.dstack([PIXELS, np.array([[255, 0, 0], [0, 255, 51]], np.uint8)])
    white = [255, 255, 255]
    expected = np.array([[[255, 0, 0], white, white], [white, [0, 0, 0], white]])
    assert np.array_equal(array(encoded(Image.fromarray(alpha), "PNG")), expected)
    grey = Image.fromarray(np.array([[0, 100]], np.uint8)).convert("LA")
    grey.putalpha(Image.fromarray(np.array([[51, 255]], np.uint8)))
    assert array(encoded(grey, "PNG")).tolist() == [[[204, 204, 204], [100, 100, 100]]]
    palette = Image.new("P", (2, 1))
    palette.putpalette([255, 0, 0, 0, 0, 255])
    palette.putdata([0, 1])
    assert array(encoded(palette, "PNG", transparency=0)).tolist() == [[white, [0, 0, 255]]]
    assert array(encoded(palette, "PNG")).tolist() == [[[255, 0, 0], [0, 0, 255]]]
    keyed = encoded(Image.fromarray(PIXELS), "PNG", transparency=(0, 255, 0))
    assert array(keyed)[0].tolist() == [[255, 0, 0], white, [0, 0, 255]]


def test_one_bit_grey_cmyk():
    bits = Image.fromarray(np.array([[True, False]]))
    assert array(encoded(bits, "PNG")).tolist() == [[[255] * 3, [0] * 3]]
    assert array(np.array([[True, False]])).tolist() == [[[255] * 3, [0] * 3]]
    assert array(np.array([[7], [9]], np.uint8)).tolist() == [[[7] * 3], [[9] * 3]]
    assert array(np.full((2, 2, 1), 7, np.uint8)).tolist() == [[[7] * 3] * 2] * 2
    red = Image.new("CMYK", (8, 8), (0, 255, 255, 0))
    assert np.abs(array(encoded(red, "JPEG")).astype(int) - (255, 0, 0)).max() <= 3


def test_first_frame_of_an_animation():
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    for kind in ("GIF", "PNG", "WEBP"):
        options = {"lossless": True} if kind == "WEBP" else {}
        data = encoded(frames[0], kind, save_all=True, append_images=frames[1:], **options)
        assert array(data)[0, 0].tolist() == [255, 0, 0]


def test_draft_never_falls_below_the_size():
    data = encoded(Image.fromarray(PIXELS).resize((640, 480)), "JPEG")
    assert decode(data).size == (640, 480)
    assert decode(data, draft=200).size == (320, 240)
    assert decode(data, draft=1000).size == (640, 480)
    assert decode(encoded(Image.fromarray(PIXELS), "PNG"), draft=1).size == (3, 2)


def one_line(source, *parts):
    with pytest.raises(ImageError) as error:
        decode(source)
    assert "\n" not in str(error.value)
    for part in parts:
        assert part in str(error.value)


def test_bad_files_give_one_clear_line(tmp_path):
    one_line(tmp_path / "none.jpg", "none.jpg: no such file")
    one_line(tmp_path, f"{tmp_path}: a folder, not an image file")
    (tmp_path / "text.jpg").write_text("hello\nthere")
    one_line(tmp_path / "text.jpg", "text.jpg: not an image (JPEG, ")
    (tmp_path / "empty.jpg").write_bytes(b"")
    one_line(tmp_path / "empty.jpg", "empty.jpg: the file is empty")
    one_line(b"", "0 bytes of image data: the file is empty")
    noise = Image.fromarray(np.random.RandomState(0).randint(0, 255, (64, 64, 3)).astype(np.uint8))
    for kind, name in (("JPEG", "cut.jpg"), ("PNG", "cut.png"), ("WEBP", "cut.webp"), ("TIFF", "cut.tif")):
        data = encoded(noise, kind)
        (tmp_path / name).write_bytes(data[: len(data) // 2])
        one_line(tmp_path / name, name)
    one_line(tmp_path / "cut.jpg", "cut.jpg: damaged image file (", "truncated")
    one_line(encoded(noise, "PDF"), "not an image")
    with (tmp_path / "text.jpg").open("rb") as file:
        one_line(file, "text.jpg: not an image")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (np.zeros((2, 2), np.float32), "expected uint8, uint16 or bool, got float32"),
        (np.zeros((2, 2, 2), np.uint8), r"array of shape \(2, 2, 2\): expected \(H, W\)"),
        (np.zeros((0, 2), np.uint8), r"expected \(H, W\)"),
        (np.zeros(4, np.uint8), r"expected \(H, W\)"),
    ],
)
def test_bad_arrays(source, message):
    with pytest.raises(ImageError, match=message):
        decode(source)


def huge_png(width, height):
    """A valid header, and hardly any data: only the size can give it away."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def test_decompression_bombs_are_refused_by_their_size(monkeypatch):
    one_line(huge_png(50_000, 50_000), "too many pixels, refused")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    one_line(huge_png(50_000, 50_000), "50000 × 50000 pixels, more than 180,000,000 are refused")
    monkeypatch.setattr(images, "MAX_PIXELS", 5)
    one_line(encoded(Image.fromarray(PIXELS), "PNG"), "3 × 2 pixels")


def picture(width=90, height=70):
    small = np.random.RandomState(1).randint(0, 256, (7, 9, 3)).astype(np.uint8)
    return Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC)


def test_eval_transform_is_a_squash_and_a_normalisation():
    transform = EvalTransform(32, (10.0, 20.0, 30.0), (2.0, 4.0, 8.0))
    result = transform(picture())
    assert (result.shape, result.dtype, result.flags["C_CONTIGUOUS"]) == ((3, 32, 32), np.float32, True)
    pixels = np.asarray(picture().resize((32, 32), Image.Resampling.BICUBIC)).astype(np.float64)
    for channel, (mean, std) in enumerate(((10, 2), (20, 4), (30, 8))):
        np.testing.assert_allclose(result[channel], (pixels[:, :, channel] - mean) / std, rtol=1e-6)


def test_eval_transform_takes_other_modes_and_defaults_to_imagenet():
    grey = picture().convert("L")
    assert np.array_equal(EvalTransform(16)(grey), EvalTransform(16)(grey.convert("RGB")))
    white = EvalTransform(8)(Image.new("RGB", (8, 8), "white"))[:, 0, 0]
    np.testing.assert_allclose(
        white, [(1 - m) / s for m, s in ((0.485, 0.229), (0.456, 0.224), (0.406, 0.225))], rtol=1e-5
    )


def test_train_boxes_are_the_papers_crops():
    transform, rng = TrainTransform(448), np.random.default_rng(0)
    sides, corners = set(), set()
    for _ in range(400):
        left, top, right, bottom = transform.box(1024, 256, rng)  # twice and half the 512 square
        side = (right - left) / 2
        assert side == (bottom - top) * 2
        assert min(left, top) >= 0 and right <= 1024 and bottom <= 256
        assert (left / 2).is_integer() and (top * 2).is_integer()
        sides.add(side)
        corners.add((left, top))
    assert sides == {512, 448, 384, 320, 256}
    assert len(corners) > 200


def test_train_transform_equals_the_long_way_where_the_long_way_is_exact():
    # an image that already is the 512/448·S square needs no first resize: crop and resize must agree to rounding
    transform = TrainTransform(56, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), flip=False)
    square = picture(64, 64)
    for seed in range(8):
        left, top, right, bottom = transform.box(64, 64, np.random.default_rng(seed))
        crop = square.crop((int(left), int(top), int(right), int(bottom)))
        expected = np.asarray(crop.resize((56, 56), Image.Resampling.BICUBIC), np.float32).transpose(2, 0, 1)
        result = transform(square, np.random.default_rng(seed))
        # inside; at the rim the one-pass box may look at pixels outside the crop
        assert np.abs(result - expected)[:, 3:-3, 3:-3].max() <= 1


def test_flip_mirrors_about_half_and_nothing_else_changes():
    plain, mirrored = TrainTransform(24, flip=False), TrainTransform(24)
    flips = 0
    for seed in range(60):
        first, second = (t(picture(), np.random.default_rng(seed)) for t in (plain, mirrored))
        assert second.flags["C_CONTIGUOUS"] and second.dtype == np.float32
        flipped = not np.array_equal(first, second)
        assert np.array_equal(second, first[:, :, ::-1] if flipped else first)
        flips += flipped
    assert 18 <= flips <= 42


def test_same_generator_same_result_and_four_draws():
    transform = TrainTransform(24)
    first, second = np.random.default_rng(5), np.random.default_rng(5)
    assert np.array_equal(transform(picture(), first), transform(picture(), second))
    TrainTransform(24, flip=False)(picture(), first)
    transform(picture(), second)
    assert first.random() == second.random()


@pytest.mark.parametrize("size", [7, 33, 160, 224, 448])
@pytest.mark.parametrize("shape", [(1, 1), (3, 500), (333, 77)])
def test_any_size_and_shape(size, shape):
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert TrainTransform(size)(Image.new("RGB", shape), rng).shape == (3, size, size)


def test_config_is_json_and_rebuilds():
    for transform in (EvalTransform(24), TrainTransform(24, crops=(1.0, 0.5), flip=False)):
        again = type(transform)(**json.loads(json.dumps(transform.config())))
        assert again.config() == transform.config()
        assert again == transform


def test_find_images(tmp_path):
    for name in ("b.JPG", "a.png", "sub/c.webp", "sub/deep/d.tif", "notes.txt", ".hidden.jpg", "sub/._x.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    inside = [tmp_path / name for name in ("a.png", "b.JPG", "sub/c.webp", "sub/deep/d.tif")]
    assert find_images([tmp_path]) == inside
    odd = tmp_path / "notes.txt"
    assert find_images([odd, "none.jpg", tmp_path, tmp_path / "a.png"]) == [odd, Path("none.jpg"), *inside]
    (tmp_path / "void").mkdir()
    with pytest.raises(ImageError, match="void: no image in this folder"):
        find_images([tmp_path / "void"])


def test_import_needs_no_torch():
    code = "import sys, sarb.data.images, sarb.data.words; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
