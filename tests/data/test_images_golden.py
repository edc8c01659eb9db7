"""Every image mode in every file format gives the tensor that the rules in docs/images.md require.

The files and their decoded pixels are stored in ``tests/golden/images.npz``, so that a change of Pillow's
decoders is noticed. ``python tests/data/test_images_golden.py`` writes it again; the expected values are
computed by hand in this file.
"""

import colorsys
import io
import itertools
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sarb.data.images import IMAGENET_MEAN, IMAGENET_STD, EvalTransform, decode
from sarb.errors import ImageError

GOLDEN = Path(__file__).parent.parent / "golden" / "images.npz"
CONTAINERS = ("JPEG", "PNG", "WEBP", "TIFF")
OPTIONS = {"JPEG": {"quality": 100, "subsampling": 0}, "WEBP": {"lossless": True, "exact": True}}
#: a picture is 2 × 2 flat blocks of 8 × 8 pixels, which is what a JPEG keeps best
SIDE = 16


def blocks(values, dtype=np.uint8):
    """Four values, or four tuples of channels, as blocks: (16, 16) or (16, 16, channels)."""
    array = np.array(values, dtype)
    return array.reshape(2, 2, *array.shape[1:]).repeat(8, 0).repeat(8, 1)


def on_white(colour, alpha):
    return [channel * alpha / 255 + 255 - alpha for channel in colour]


def from_ycbcr(y, cb, cr):
    """JFIF."""
    cb = cb - 128
    cr = cr - 128
    return [
        min(255, max(0, value))
        for value in (y + 1.402 * cr, y - 0.344136 * cb - 0.714136 * cr, y + 1.772 * cb)
    ]


def from_cmyk(cyan, magenta, yellow, black):
    return [(255 - ink) * (255 - black) / 255 for ink in (cyan, magenta, yellow)]


def from_lab(light, a, b):
    """CIE L*a*b* under D50 to sRGB (Bradford to D65); Pillow keeps L* as 0..255, a* and b* shifted by 128."""
    y = (light * 100 / 255 + 16) / 116
    root = np.array([y + (a - 128) / 500, y, y - (b - 128) / 200])
    white = np.array([0.96422, 1.0, 0.82521])
    xyz = white * np.where(root > 6 / 29, root**3, 3 * (6 / 29) ** 2 * (root - 4 / 29))
    to_linear = [
        [3.1338561, -1.6168667, -0.4906146],
        [-0.9787684, 1.9161415, 0.0334540],
        [0.0719453, -0.2289914, 1.4052427],
    ]
    linear = np.clip(to_linear @ xyz, 0, 1)
    return list(255 * np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055))


def from_hsv(hue, saturation, value):
    return [255 * channel for channel in colorsys.hsv_to_rgb(hue / 255, saturation / 255, value / 255)]


def palette(mode, *alphas):
    image = Image.fromarray(blocks([0, 1, 2, 3]), "P")
    image.putpalette([channel for colour in COLOURS for channel in colour])
    if mode == "PA":
        image = image.convert("PA")
        image.putalpha(Image.fromarray(blocks(alphas)))
    if mode == "P tRNS":
        image.info["transparency"] = bytes(alphas)
    return image


def merged(mode, values):
    return Image.merge(mode, [Image.fromarray(blocks(channel)) for channel in zip(*values, strict=True)])


def keyed():
    image = Image.fromarray(blocks(COLOURS))
    image.info["transparency"] = COLOURS[1]
    return image


COLOURS = [(200, 30, 60), (20, 180, 90), (10, 20, 250), (240, 230, 80)]
GREYS = [0, 100, 200, 255]
ALPHAS = [255, 51, 102, 0]
INKS = [(0, 255, 255, 0), (200, 10, 60, 40), (0, 0, 0, 128), (90, 90, 10, 200)]
LUMAS = [(76, 85, 255), (150, 100, 120), (29, 255, 107), (220, 40, 140)]
LABS = [(137, 160, 150), (128, 128, 128), (200, 110, 150), (90, 140, 100)]  # all inside sRGB
HUES = [(0, 255, 255), (85, 128, 200), (170, 255, 100), (40, 0, 77)]
DEEP = [0, 257, 30000, 65535]

#: mode -> (picture, four expected colours, most that a lossless container may differ); "?" marks what is
#: refused
MODES = {
    "1": (lambda: Image.fromarray(blocks([0, 1, 1, 0], bool)), [[v] * 3 for v in (0, 255, 255, 0)], 0),
    "L": (lambda: Image.fromarray(blocks(GREYS)), [[grey] * 3 for grey in GREYS], 0),
    "LA": (
        lambda: merged("LA", zip(GREYS, ALPHAS, strict=True)),
        [on_white([grey] * 3, alpha) for grey, alpha in zip(GREYS, ALPHAS, strict=True)],
        0.5,
    ),
    "P": (lambda: palette("P"), COLOURS, 0),
    "P tRNS": (lambda: palette("P tRNS", *ALPHAS), list(map(on_white, COLOURS, ALPHAS)), 0.5),
    "PA": (lambda: palette("PA", *ALPHAS), list(map(on_white, COLOURS, ALPHAS)), 0.5),
    "RGB": (lambda: Image.fromarray(blocks(COLOURS)), COLOURS, 0),
    "RGB tRNS": (keyed, [COLOURS[0], (255, 255, 255), *COLOURS[2:]], 0),
    "RGBA": (
        lambda: merged("RGBA", [(*c, a) for c, a in zip(COLOURS, ALPHAS, strict=True)]),
        list(map(on_white, COLOURS, ALPHAS)),
        0.5,
    ),
    "CMYK": (lambda: merged("CMYK", INKS), [from_cmyk(*inks) for inks in INKS], 1),
    "YCbCr": (lambda: merged("YCbCr", LUMAS), [from_ycbcr(*luma) for luma in LUMAS], 1.5),
    "LAB": (lambda: merged("LAB", LABS), [from_lab(*lab) for lab in LABS], 2),
    "HSV": (lambda: merged("HSV", HUES), [from_hsv(*hue) for hue in HUES], 1.5),
    "I;16": (lambda: Image.fromarray(blocks(DEEP, np.uint16)), [[value / 257] * 3 for value in DEEP], 0.5),
    "I": (lambda: Image.fromarray(blocks(DEEP, np.int32)), [[value / 257] * 3 for value in DEEP], 0.5),
    "F": (lambda: Image.fromarray(blocks([0, 0.25, 0.5, 1], np.float32)), "?", 0),
}
#: what the container cannot hold: Pillow's save raises
IMPOSSIBLE = {
    "JPEG": {"LA", "P", "P tRNS", "PA", "RGBA", "LAB", "HSV", "I;16", "I", "F"},
    "PNG": {"PA", "CMYK", "YCbCr", "LAB", "HSV", "I", "F"},
    "WEBP": set(),
    "TIFF": {"HSV"},
}
#: what cannot be either, but Pillow writes something else: only a PNG has a transparent colour, and a WebP
#: has 8 bits
CHANGED = {("RGB tRNS", "JPEG"), ("RGB tRNS", "TIFF"), ("RGB tRNS", "WEBP"), ("P tRNS", "TIFF")}
CLIPPED = {("I;16", "WEBP"), ("I", "WEBP"), ("F", "WEBP")}
PAIRS = [
    (mode, kind)
    for mode, kind in itertools.product(MODES, CONTAINERS)
    if mode not in IMPOSSIBLE[kind] and (mode, kind) not in CHANGED | CLIPPED
]


def encode(image, kind, **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **{**OPTIONS.get(kind, {}), **options})
    return buffer.getvalue()


def tensor(source):
    return EvalTransform(SIDE)(decode(source))


def expected(mode):
    """What a tensor (3, 16, 16) should be, in float64."""
    mean, std = (np.array(triple)[:, None, None] for triple in (IMAGENET_MEAN, IMAGENET_STD))
    return (blocks(MODES[mode][1], np.float64).transpose(2, 0, 1) - mean) / std


def levels(one, other):
    """Largest difference of two tensors, in steps of the 256 levels."""
    return float((np.abs(one - other) * np.array(IMAGENET_STD)[:, None, None]).max())


def tolerance(mode, kind):
    """A JPEG keeps flat blocks to 2 levels at quality 100; float32 adds 1e-4."""
    return MODES[mode][2] + 1e-4 + (2 if kind == "JPEG" else 0)


def test_there_are_twelve_modes_and_more():
    assert len(MODES) >= 12 and len(PAIRS) >= 30


@pytest.mark.parametrize(("mode", "kind"), PAIRS)
def test_what_is_written_today_decodes_as_it_should(mode, kind):
    data = encode(MODES[mode][0](), kind)
    if MODES[mode][1] == "?":
        with pytest.raises(ImageError, match="floating-point pixels have no standard range"):
            decode(data)
        return
    assert levels(tensor(data), expected(mode)) <= tolerance(mode, kind)


@pytest.mark.parametrize(("mode", "kind"), [pair for pair in PAIRS if MODES[pair[0]][1] != "?"])
def test_the_stored_file_gives_the_stored_tensor(mode, kind):
    with np.load(GOLDEN) as stored:
        data = stored[f"{mode}/{kind}/file"].tobytes()
        golden = stored[f"{mode}/{kind}/tensor"]
    assert golden.dtype == np.float32 and golden.shape == (3, SIDE, SIDE)
    # libjpeg and LittleCMS may round differently elsewhere; all else is exact
    assert levels(tensor(data), golden) <= (1.0001 if kind == "JPEG" or mode == "LAB" else 0)
    assert levels(golden, expected(mode)) <= tolerance(mode, kind)


@pytest.mark.parametrize(
    ("mode", "kind"), [(mode, kind) for kind in CONTAINERS for mode in sorted(IMPOSSIBLE[kind])]
)
def test_the_other_pairs_do_not_exist(mode, kind):
    with pytest.raises(OSError, match="cannot write mode"):
        encode(MODES[mode][0](), kind)


@pytest.mark.parametrize(("mode", "kind"), sorted(CHANGED))
def test_a_transparent_colour_is_lost_by_other_containers(mode, kind):
    opaque = mode.removesuffix(" tRNS")
    assert levels(tensor(encode(MODES[mode][0](), kind)), expected(opaque)) <= tolerance(opaque, kind)


@pytest.mark.parametrize(("mode", "kind"), sorted(CLIPPED))
def test_deep_pixels_are_clipped_by_the_writer_of_webp(mode, kind):
    image = MODES[mode][0]()
    clipped = np.asarray(image).clip(0, 255).astype(np.uint8)
    assert np.array_equal(np.asarray(decode(encode(image, kind)))[:, :, 0], clipped)


@pytest.mark.parametrize("mode", [mode for mode in MODES if MODES[mode][1] != "?"])
def test_a_picture_in_memory_is_treated_alike(mode):
    assert levels(tensor(MODES[mode][0]()), expected(mode)) <= tolerance(mode, "memory")


@pytest.mark.parametrize("mode", ["La", "RGBa"])
def test_premultiplied_alpha(mode):
    plain = {"La": "LA", "RGBa": "RGBA"}[mode]
    # multiplying and dividing by alpha rounds twice
    assert levels(tensor(MODES[plain][0]().convert(mode)), expected(plain)) <= 2


def test_lossy_webp_keeps_flat_colours():
    data = encode(
        MODES["RGB"][0]().resize((256, 256), Image.Resampling.NEAREST), "WEBP", lossless=False, quality=100
    )
    middle = np.asarray(decode(data))[64::128, 64::128].reshape(4, 3)
    assert np.abs(middle.astype(int) - COLOURS).max() <= 4


# files that Pillow does not write: 16 bits, odd byte orders, transparent colours


def png(depth, colour_type, samples, *chunks):
    """A PNG of one row; ``samples`` are its bytes."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    channels = {0: 1, 2: 3, 4: 2, 6: 4}[colour_type]
    header = struct.pack(">IIBBBBB", len(samples) * 8 // depth // channels, 1, depth, colour_type, 0, 0, 0)
    parts = [(b"IHDR", header), *chunks, (b"IDAT", zlib.compress(b"\0" + samples)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def tiff(order, bits, photometric, samples, sample_format=1):
    """An uncompressed TIFF of one row; ``order`` is "<" (II) or ">" (MM), ``bits`` one number per channel."""
    width = len(samples) * 8 // sum(bits)
    tags = {
        256: [width],
        257: [1],
        258: bits,
        259: [1],
        262: [photometric],
        273: [0],
        277: [len(bits)],
        278: [1],
        279: [len(samples)],
        338: [2] if len(bits) == 4 else None,
        339: [sample_format],
    }
    tags = {tag: values for tag, values in tags.items() if values is not None}
    after = 8 + 2 + 12 * len(tags) + 4
    long = struct.pack(f"{order}{len(bits)}H", *bits) if len(bits) > 2 else b""
    tags[273] = [after + len(long)]
    entries = b""
    for tag, values in tags.items():
        kind, letter = (3, "H") if tag in (258, 259, 262, 277, 338, 339) else (4, "I")
        inline = struct.pack(f"{order}{len(values)}{letter}", *values).ljust(4, b"\0")
        entries += struct.pack(f"{order}HHI", tag, kind, len(values))
        entries += inline if len(inline) == 4 else struct.pack(f"{order}I", after)
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}IH", 8, len(tags))
    return head + entries + struct.pack(f"{order}I", 0) + long + samples


def row(source, channel=0):
    return np.asarray(decode(source))[0, :, channel].astype(int)


#: 1024 values from black to white
RAMP = np.linspace(0, 65535, 1024).round().astype(np.uint16)
COLOUR_RAMP = np.stack([RAMP] * 3, 1)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(encode(Image.fromarray(RAMP[None]), "PNG"), id="PNG grey"),
        pytest.param(encode(Image.fromarray(RAMP[None]), "TIFF"), id="TIFF grey, little-endian"),
        pytest.param(tiff("<", [16], 1, RAMP.astype("<u2").tobytes()), id="TIFF grey by hand, little-endian"),
        pytest.param(tiff(">", [16], 1, RAMP.astype(">u2").tobytes()), id="TIFF grey, big-endian"),
        pytest.param(png(16, 2, COLOUR_RAMP.astype(">u2").tobytes()), id="PNG colour"),
        pytest.param(
            tiff("<", [16] * 3, 2, COLOUR_RAMP.astype("<u2").tobytes()), id="TIFF colour, little-endian"
        ),
        pytest.param(
            tiff(">", [16] * 3, 2, COLOUR_RAMP.astype(">u2").tobytes()), id="TIFF colour, big-endian"
        ),
        pytest.param(b"P5 1024 1 65535\n" + RAMP.astype(">u2").tobytes(), id="PGM"),
        pytest.param(RAMP[None], id="array"),
    ],
)
def test_a_ramp_of_16_bits_keeps_its_levels(data):
    found = row(data)
    assert len(np.unique(found)) >= 250 and (np.diff(found) >= 0).all() and (found[0], found[-1]) == (0, 255)
    # grey is rounded; Pillow cuts colour to its high byte
    assert np.abs(found - RAMP / 257).max() < 1


def test_grey_of_16_bits_is_scaled_by_the_whole_range():
    values = np.array([[0, 128, 129, 4095, 65535]], np.uint16)
    for data in (
        encode(Image.fromarray(values), "PNG"),
        values,
        tiff(">", [16], 1, values.astype(">u2").tobytes()),
    ):
        assert row(data).tolist() == [0, 0, 1, 16, 255], "12 bits in 16 stay dark: nobody can know"


def test_a_tiff_that_says_12_bits_is_scaled_by_12_bits():
    assert row(tiff("<", [12], 1, bytes([0xFF, 0xF8, 0x00]))).tolist() == [255, 128]


def test_white_is_zero():
    values = np.array([0, 257, 65535], "<u2").tobytes()
    assert row(tiff("<", [16], 0, values)).tolist() == [255, 254, 0]
    assert row(tiff(">", [8], 0, bytes([0, 1, 255]))).tolist() == [255, 254, 0]


def test_16_bits_with_alpha():
    grey = np.array([30000, 65535, 30000, 0, 0, 13107], ">u2").tobytes()
    assert row(png(16, 4, grey)).tolist() == [117, 255, 204]
    colour = np.array([30000, 0, 0, 65535, 0, 0, 0, 13107], ">u2")
    for data in (png(16, 6, colour.tobytes()), tiff("<", [16] * 4, 2, colour.astype("<u2").tobytes())):
        assert row(data).tolist() == [117, 204]


def test_transparent_colours_of_a_png():
    def key(*values):
        return b"tRNS", struct.pack(f">{len(values)}H", *values)

    assert row(png(1, 0, bytes([0b10100000]), key(0))).tolist() == [255] * 8
    assert row(png(8, 0, bytes([10, 20]), key(10))).tolist() == [255, 20]
    deep = np.array([1000, 30000], ">u2").tobytes()
    assert row(png(16, 0, deep, key(1000))).tolist() == [255, 117]
    # cut to 8 bits 1000 is 3, and 232 has the same low byte: neither may be mistaken for the transparent
    # colour
    colours = np.array([[1000] * 3, [232 * 257] * 3], ">u2").tobytes()
    assert row(png(16, 2, colours, key(1000, 1000, 1000))).tolist() == [3, 232]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            tiff("<", [16], 1, np.array([-5, 100], "<i2").tobytes(), 2),
            "pixels from -5 to 100 do not fit in 16 bits",
        ),
        (
            tiff(">", [32], 1, np.array([0, 65536], ">i4").tobytes(), 2),
            "pixels from 0 to 65536 do not fit in 16 bits",
        ),
        (
            tiff("<", [32], 1, np.array([0, 1], "<f4").tobytes(), 3),
            "floating-point pixels have no standard range",
        ),
        (tiff("<", [64], 1, np.array([0, 1], "<f8").tobytes(), 3), "an unsupported kind of TIFF"),
    ],
)
def test_pixels_without_a_known_range_are_refused(data, message):
    with pytest.raises(ImageError, match=message):
        decode(data)


# orientation

#: 2 × 3 flat blocks, all different
UPRIGHT = np.array(
    [[[250, 0, 0], [0, 250, 0], [0, 0, 250]], [[250, 250, 0], [10, 10, 10], [240, 240, 240]]], np.uint8
)


def stored_as(orientation, block):
    """How a camera stores the upright picture under each code, from the EXIF table."""
    upright = UPRIGHT.repeat(block, 0).repeat(block, 1)
    return Image.fromarray(
        np.ascontiguousarray(
            {
                1: upright,
                2: upright[:, ::-1],
                3: upright[::-1, ::-1],
                4: upright[::-1],
                5: upright.transpose(1, 0, 2),
                6: np.rot90(upright),
                7: upright[::-1, ::-1].transpose(1, 0, 2),
                8: np.rot90(upright, -1),
            }[orientation]
        )
    )


@pytest.mark.parametrize("draft", [None, 16])
@pytest.mark.parametrize("kind", CONTAINERS)
def test_all_orientations_give_the_same_tensor(kind, draft, tmp_path):
    tensors = []
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        file = tmp_path / f"{orientation}.{kind.lower()}"
        file.write_bytes(encode(stored_as(orientation, 32), kind, exif=exif))
        image = decode(file, draft=draft)
        assert image.size == ((24, 16) if draft and kind == "JPEG" else (96, 64))
        centres = np.asarray(image)[
            image.height // 4 :: image.height // 2, image.width // 6 :: image.width // 3
        ]
        assert np.abs(centres.astype(int) - UPRIGHT).max() <= (2 if kind == "JPEG" else 0)
        assert np.array_equal(np.asarray(decode(image)), np.asarray(image)), (
            "what is upright is not turned again"
        )
        tensors.append(EvalTransform(24)(image))
    for other in tensors[1:]:
        assert np.array_equal(other, tensors[0])


def main():
    """Write the golden file."""
    arrays = {}
    for mode, kind in PAIRS:
        if MODES[mode][1] != "?":
            data = encode(MODES[mode][0](), kind)
            arrays |= {
                f"{mode}/{kind}/file": np.frombuffer(data, np.uint8),
                f"{mode}/{kind}/tensor": tensor(data),
            }
    GOLDEN.parent.mkdir(exist_ok=True)
    np.savez_compressed(GOLDEN, **arrays)


if __name__ == "__main__":
    main()
