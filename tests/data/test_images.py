import contextlib
import io
import json
import os
import struct
import subprocess
import sys
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sarb.data import decoding, images
from sarb.data.images import EvalTransform, TrainTransform, decode, find_images
from sarb.errors import ImageError
from tests.documentation.tools import ROOT, blocks
from tests.faults.image_kinds import many_scans, samples

#: 2 rows × 3 columns, every pixel different
PIXELS = np.array(
    [[[255, 0, 0], [0, 255, 0], [0, 0, 255]], [[255, 255, 0], [0, 0, 0], [255, 255, 255]]], np.uint8
)


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
    for source in (
        path,
        str(path),
        path.read_bytes(),
        io.BytesIO(path.read_bytes()),
        Image.fromarray(PIXELS),
        PIXELS,
    ):
        assert np.array_equal(array(source), PIXELS)


def test_jpeg_and_mpo():
    smooth = Image.fromarray(np.full((16, 16, 3), (200, 100, 50), np.uint8))
    for data in (encoded(smooth, "JPEG"), encoded(smooth, "MPO", save_all=True, append_images=[smooth])):
        assert np.abs(array(data).astype(int) - (200, 100, 50)).max() <= 3


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
    with pytest.raises(ImageError, match="pixels from 0 to 131070 do not fit in 16 bits"):
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


@pytest.mark.parametrize(
    ("size", "least", "expected"),
    [
        ((800, 640), 80, (100, 80)),
        ((800, 640), 81, (200, 160)),
        ((800, 640), 161, (400, 320)),
        ((800, 640), 321, (800, 640)),
        ((640, 800), 80, (80, 100)),
        ((804, 640), 80, (201, 160)),  # 804 / 8 would be rounded up
        ((802, 640), 80, (401, 320)),
        ((801, 640), 80, (801, 640)),
        ((8, 8), 1, (1, 1)),
    ],
)
def test_a_draft_is_the_smallest_that_is_large_enough_and_exact(size, least, expected):
    assert decode(encoded(picture(*size), "JPEG"), draft=least).size == expected


def test_a_draft_shows_the_same_picture():
    data = encoded(picture(720, 560), "JPEG", quality=95)
    full, small = (EvalTransform(64, (0.0,) * 3, (1.0,) * 3)(decode(data, draft)) for draft in (None, 128))
    assert decode(data, 128).size == (180, 140)
    assert np.abs(full - small).max() <= 4 and not np.array_equal(full, small)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_draft_is_turned_like_the_whole(orientation):
    exif = Image.Exif()
    exif[274] = orientation
    data = encoded(picture(800, 640), "JPEG", exif=exif)
    full = decode(data)
    small = decode(data, draft=150)
    assert small.size == tuple(side // 4 for side in full.size)
    assert np.abs(array(full.resize(small.size, Image.Resampling.BOX)).astype(int) - array(small)).max() <= 6


@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_grey_and_inks_may_be_drafted(mode):
    data = encoded(picture(800, 640).convert(mode), "JPEG")
    full = array(data)
    small = array(data, draft=300)
    assert small.shape == (320, 400, 3)
    expected = np.asarray(Image.fromarray(full).resize((400, 320), Image.Resampling.BOX)).astype(int)
    assert np.abs(expected - small).max() <= 6


def test_the_limit_is_that_of_the_size_in_the_file(monkeypatch):
    monkeypatch.setattr(decoding, "MAX_PIXELS", 800 * 640 - 1)
    with pytest.raises(ImageError, match="800 × 640 pixels"):
        decode(encoded(picture(800, 640), "JPEG"), draft=10)


@pytest.mark.parametrize("size", [48, 224])
def test_two_decoded_pixels_per_pixel_of_the_smallest_crop(size):
    assert EvalTransform(size).least == 2 * size and EvalTransform(size, draft=0).least is None
    assert TrainTransform(size).least == 4 * size and TrainTransform(size, draft=0).least is None
    transform = TrainTransform(size)
    rng = np.random.default_rng(0)
    for _ in range(50):
        left, top, right, bottom = transform.box(transform.least, 3 * transform.least, rng)
        assert min(right - left, bottom - top) >= 2 * size


def test_several_threads_leave_the_filters_of_others_alone(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 60_000)
    data = encoded(picture(300, 300), "TIFF")
    before = list(warnings.filters)
    with ThreadPoolExecutor(8) as pool:
        assert {image.size for image in pool.map(decode, [data] * 64)} == {(300, 300)}
    assert warnings.filters == before


def assert_one_line(source, *parts):
    with pytest.raises(ImageError) as error:
        decode(source)
    assert "\n" not in str(error.value)
    for part in parts:
        assert part in str(error.value)


def test_bad_files_give_one_clear_line(tmp_path):
    assert_one_line(tmp_path / "none.jpg", "none.jpg: no such file")
    assert_one_line(tmp_path, f"{tmp_path}: this is a folder, not an image file")
    (tmp_path / "text.jpg").write_text("hello\nthere")
    assert_one_line(tmp_path / "text.jpg", "text.jpg: not an image (JPEG, ")
    (tmp_path / "empty.jpg").write_bytes(b"")
    assert_one_line(tmp_path / "empty.jpg", "empty.jpg: the file is empty")
    assert_one_line(b"", "0 bytes of image data: the file is empty")
    noise = Image.fromarray(np.random.RandomState(0).randint(0, 255, (64, 64, 3)).astype(np.uint8))
    for kind, name in (("JPEG", "cut.jpg"), ("PNG", "cut.png"), ("WEBP", "cut.webp"), ("TIFF", "cut.tif")):
        data = encoded(noise, kind)
        (tmp_path / name).write_bytes(data[: len(data) // 2])
        assert_one_line(tmp_path / name, name)
    assert_one_line(tmp_path / "cut.jpg", "cut.jpg: damaged image file (", "truncated")
    assert_one_line(encoded(noise, "PDF"), "not an image")
    with (tmp_path / "text.jpg").open("rb") as file:
        assert_one_line(file, "text.jpg: not an image")


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


# decompression bombs


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def zeros(count):
    """So many zero bytes, deflated a thousand times smaller, without ever holding them."""
    packer = zlib.compressobj()
    part = bytes(1_000_000)
    return (
        b"".join(packer.compress(part[: count - start]) for start in range(0, count, len(part)))
        + packer.flush()
    )


def png_of(width, height, data, *before):
    """A black-and-white PNG."""
    parts = [chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)), *before]
    return b"\x89PNG\r\n\x1a\n" + b"".join([*parts, chunk(b"IDAT", data), chunk(b"IEND", b"")])


def tiff_of(width, height, *more):
    tags = [
        (256, 4, 1, width),
        (257, 4, 1, height),
        (258, 3, 1, 8),
        (259, 3, 1, 1),
        (262, 3, 1, 1),
        (273, 4, 1, 8),
    ]
    tags += [(277, 3, 1, 1), (278, 4, 1, height), (279, 4, 1, 100), *more]
    entries = b"".join(struct.pack("<HHII", *tag) for tag in sorted(tags))
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4)


def grown(data, place, width, height, order="<"):
    """An image file with another size written into its header."""
    return data[:place] + struct.pack(f"{order}HH", width, height) + data[place + 4 :]


def bombs():
    """Name -> (file, what is said about it, or the size of what is read all the same)."""
    small = Image.new("L", (16, 16))
    jpeg, gif, webp = (encoded(small, kind) for kind in ("JPEG", "GIF", "WEBP"))
    mpo = encoded(small, "MPO", save_all=True, append_images=[small])
    moving = encoded(small, "WEBP", save_all=True, append_images=[Image.new("L", (16, 16), 9)])
    size_of_jpeg = jpeg.index(b"\xff\xc0") + 5
    size_of_mpo = mpo.index(b"\xff\xc0") + 5
    large = encoded(Image.new("1", (3000, 3000)), "GIF")
    head = 13 + 3 * 2 ** ((large[10] & 7) + 1)
    text = zlib.compress(bytes(10)), zeros(300_000_000)
    return {
        "rows.png": (png_of(30_000, 30_000, zeros(30_000 * 3751)), "30000 × 30000 pixels"),
        "header.png": (png_of(2**31 - 1, 2**31 - 1, b""), "2147483647 × 2147483647 pixels"),
        "strips.tif": (tiff_of(60_000, 60_000), "60000 × 60000 pixels"),
        "screen.gif": (grown(gif, 6, 65_535, 65_535), "65535 × 65535 pixels"),
        "frame.gif": (grown(gif, gif.index(b",", 13) + 5, 65_535, 65_535), "more than 178,956,970 pixels"),
        "still.jpg": (grown(jpeg, size_of_jpeg, 65_500, 65_500, ">"), "65500 × 65500 pixels"),
        "several.mpo": (grown(mpo, size_of_mpo, 65_500, 65_500, ">"), "65500 × 65500 pixels"),
        "still.webp": (grown(webp, 26, 16_383, 16_383), "more than 178,956,970 pixels"),
        "moving.webp": (moving[:24] + b"\xff\x7f\0" * 2 + moving[30:], "more than 178,956,970 pixels"),
        "header.ppm": (b"P6 60000 60000 255\n" + bytes(100), "60000 × 60000 pixels"),
        "header.bmp": (
            b"BM" + struct.pack("<IIIIiiHHIIiiII", 99, 0, 54, 40, 60_000, 60_000, 1, 24, *[0] * 6),
            "60000 × 60000 pixels",
        ),
        "text.png": (png_of(8, 1, text[0], chunk(b"zTXt", b"Comment\0\0" + text[1])), "too large"),
        "profile.png": (png_of(8, 1, text[0], chunk(b"iCCP", b"icc\0\0" + text[1])), "too large"),
        "tag.tif": (tiff_of(8, 1, (270, 2, 2**32 - 1, 8)), (8, 1)),
        "frames.gif": (large[:head] + large[head:-1] * 300 + b";", (3000, 3000)),
    }


MEASURED = """
import json, pathlib, re, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))
from sarb.data.images import decode
from sarb.errors import ImageError
for path in sys.argv[1:]:
    try:
        said = decode(path).size
    except ImageError as error:
        said = str(error)
    # ru_maxrss would count the process that started this one
    peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1])
    print(json.dumps([said, peak / 2**20]))
"""


needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")


def measure(files, *options):
    """Decode files in a new process; return (size or message, peak gigabytes) of each, and its stderr."""
    done = subprocess.run(
        [sys.executable, *options, "-c", MEASURED, *map(str, files)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@needs_proc
def test_bombs_are_refused_in_little_memory(tmp_path):
    files = bombs()
    for name, (data, _) in files.items():
        (tmp_path / name).write_bytes(data)
        assert len(data) < 3_000_000
    results, noise = measure([tmp_path / name for name in files], "-W", "ignore::UserWarning")
    assert noise == ""
    for (name, (_, expected)), (said, gigabytes) in zip(files.items(), results, strict=True):
        assert gigabytes < 0.25, name
        if isinstance(expected, tuple):
            assert said == list(expected), name
        else:
            assert f"{name}: " in said and expected in said and "\n" not in said, name


@needs_proc
def test_large_photographs_are_read_without_a_warning(tmp_path):
    (tmp_path / "large.png").write_bytes(png_of(10_000, 9_000, zeros(9_000 * 1251)))
    Image.new("1", (10_000, 9_000)).save(tmp_path / "large.tif")
    results, noise = measure([tmp_path / "large.png", tmp_path / "large.tif"], "-W", "error")
    assert [said for said, _ in results] == [[10_000, 9_000]] * 2 and noise == ""
    assert results[-1][1] < 1


def test_large_photographs_leave_the_filters_of_others_alone(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 4)
    before = list(warnings.filters)
    assert decode(encoded(Image.fromarray(PIXELS), "TIFF")).size == (3, 2)
    assert warnings.filters == before
    with pytest.warns(Image.DecompressionBombWarning):
        Image.open(io.BytesIO(encoded(Image.fromarray(PIXELS), "PNG")))


def test_the_limit_holds_for_every_source(monkeypatch, tmp_path):
    monkeypatch.setattr(decoding, "MAX_PIXELS", 5)
    Image.fromarray(PIXELS).save(tmp_path / "a.png")
    for source in (tmp_path / "a.png", (tmp_path / "a.png").read_bytes(), Image.open(tmp_path / "a.png")):
        assert_one_line(source, "too large, 3 × 2 pixels (at most 5 are allowed)")


@pytest.mark.parametrize("kind", ["ICO", "EPS", "PDF", "JPEG2000", "TGA", "PCX", "AVIF", "ICNS", "DDS"])
def test_other_kinds_are_refused_with_a_list_of_what_is_read(kind):
    assert_one_line(
        encoded(Image.new("RGB", (64, 64)), kind),
        "not an image (JPEG, PNG, BMP, GIF, PPM, WEBP, TIFF are supported)",
    )
    assert_one_line(b"8BPS\0\1" + bytes(100), "are supported)")


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
    transform = TrainTransform(448)
    rng = np.random.default_rng(0)
    sides = set()
    corners = set()
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
    # an image that already is the 512/448·S square needs no first resize: crop and resize must agree to
    # rounding
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
    plain = TrainTransform(24, flip=False)
    mirrored = TrainTransform(24)
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
    first = np.random.default_rng(5)
    second = np.random.default_rng(5)
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
    with pytest.raises(ImageError, match="void: no images in this folder"):
        find_images([tmp_path / "void"])


def test_the_page_says_what_the_code_does(tmp_path, monkeypatch):
    page = ROOT / "docs" / "images.md"
    text = page.read_text(encoding="utf-8")
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| `")]
    formats = {row[1].strip(" `"): tuple(row[2].replace("`", "").split()) for row in rows if "`." in row[2]}
    assert tuple(formats) == images.FORMATS
    assert sorted(suffix for suffixes in formats.values() for suffix in suffixes) == sorted(images.SUFFIXES)
    assert (
        f"More than {images.MAX_PIXELS:,} pixels" in text
        and f"Above {100 * images.MOST_UNREADABLE:g} %" in text
    )
    monkeypatch.chdir(tmp_path)
    picture().save("photo.jpg")
    shown = [block.text for block in blocks(page) if block.language == "python"]
    names = {}
    assert len(shown) == 2
    for text in shown:
        exec(text, names)
        assert names.pop("tensor").shape == (3, 224, 224)


def test_import_needs_no_torch():
    code = "import sys, sarb.data.images, sarb.data.words; print('torch' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
    )


def test_a_header_says_how_much_memory_an_image_takes():
    large = Image.new("RGB", (800, 400))
    for kind, options, draft, scale, memory in (
        ("JPEG", {}, None, 1, 8 * 320_000),
        ("JPEG", {}, 100, 4, 8 * 20_000),
        ("JPEG", {"progressive": True}, 100, 4, 8 * 320_000),
        ("PNG", {}, 100, 1, 20 * 320_000),
    ):
        header = decoding.read_header(encoded(large, kind, **options), draft)
        assert (header.width, header.height, header.scale, header.memory) == (800, 400, scale, memory)
    with pytest.raises(ImageError, match="5 bytes of image data: not an image"):
        decoding.read_header(b"photo")


def test_a_pipe_or_device_is_refused_and_never_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "zero.jpg").symlink_to("/dev/zero")
    for name, kind in (("pipe.jpg", "a named pipe"), ("zero.jpg", "a device")):
        with pytest.raises(ImageError, match=f"{name}: this is {kind}, not a file"):
            decode(tmp_path / name)


def test_a_jpeg_of_thousands_of_scans_is_refused():
    """A scan is a pass over all pixels; 2,000 of them in 113 kB took 10 s."""
    with pytest.raises(ImageError, match=r"scans, which takes too long"):
        decode(many_scans(3_000))
    assert decode(samples()["progressive.jpg"]).size == (48, 32)


def test_a_damaged_tiff_prints_nothing(capfd):
    damaged = bytearray(samples()["fax.tif"])
    damaged[9:60] = b"\x55" * 51
    with contextlib.suppress(ImageError):
        decode(bytes(damaged))
    assert capfd.readouterr().err == ""
