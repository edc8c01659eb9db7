"""Small valid images in every format that is read, and seeded damage to them: flipped bits, false sizes, bombs."""

from __future__ import annotations

import io
import random
import re
import struct
import zlib
from collections.abc import Callable
from functools import cache

import numpy as np
from PIL import Image

SIZE = (48, 32)
#: sides that a header may claim; the product of two of them can be over the limit, zero or negative
SIDES = (0, 1, 3, 1000, 13_000, 20_000, 65_535, 2**31 - 1, 2**32 - 1)

Damage = Callable[[bytes, random.Random], bytes]


@cache
def samples() -> dict[str, bytes]:
    """Name -> content; every mode and feature that a decoder has a branch for."""
    chance = np.random.default_rng(0)
    colour = Image.fromarray(chance.integers(0, 255, (*SIZE[::-1], 4), np.uint8), "RGBA")
    deep = Image.fromarray(chance.integers(0, 65535, SIZE[::-1], np.uint16))
    plain = colour.convert("RGB")
    other = plain.transpose(Image.Transpose.ROTATE_180)
    upright = Image.Exif()
    upright[274] = 6
    save = _saved
    return {
        "plain.jpg": save(plain, "JPEG"),
        "progressive.jpg": save(plain, "JPEG", progressive=True, quality=40),
        "grey.jpg": save(plain.convert("L"), "JPEG"),
        "cmyk.jpg": save(plain.convert("CMYK"), "JPEG"),
        "exif.jpg": save(plain, "JPEG", exif=upright, icc_profile=b"\0" * 400, comment=b"hello"),
        "two.mpo": save(plain, "MPO", save_all=True, append_images=[other]),
        "plain.png": save(plain, "PNG"),
        "alpha.png": save(colour, "PNG", icc_profile=b"\0" * 400, exif=upright),
        "sixteen.png": save(deep, "PNG"),
        "palette.png": save(plain.convert("P"), "PNG", transparency=3, bits=8),
        "moving.png": save(plain, "PNG", save_all=True, append_images=[other]),
        "still.gif": save(plain.convert("P"), "GIF", transparency=1),
        "moving.gif": save(plain, "GIF", save_all=True, append_images=[other, plain], loop=0),
        "plain.webp": save(colour, "WEBP", exif=upright),
        "lossless.webp": save(plain, "WEBP", lossless=True),
        "moving.webp": save(plain, "WEBP", save_all=True, append_images=[other]),
        "plain.tif": save(plain, "TIFF"),
        "deflate.tif": save(colour, "TIFF", compression="tiff_adobe_deflate"),
        "lzw.tif": save(plain, "TIFF", compression="tiff_lzw", exif=upright),
        "jpeg.tif": save(plain, "TIFF", compression="jpeg"),
        "fax.tif": save(plain.convert("1"), "TIFF", compression="group4"),
        "sixteen.tif": save(deep, "TIFF"),
        "cmyk.tif": save(plain.convert("CMYK"), "TIFF", compression="packbits"),
        "plain.bmp": save(plain, "BMP"),
        "palette.bmp": save(plain.convert("P"), "BMP"),
        "plain.ppm": save(plain, "PPM"),
        "sixteen.pgm": save(deep, "PPM"),
        "bits.pbm": save(plain.convert("1"), "PPM"),
    }


def _saved(image: Image.Image, form: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def damaged(draw: random.Random) -> tuple[str, bytes]:
    """A sample with one to three kinds of damage; the name says which, and may have a wrong suffix."""
    name, content = draw.choice(list(samples().items()))
    done = []
    for change in draw.choices(DAMAGES, k=draw.choice((1, 1, 1, 2, 3))):
        content = change(content, draw)
        done.append(change.__name__)
    stem, _, suffix = name.partition(".")
    suffix = draw.choice(("jpg", "png", "gif", "tif", "webp", "bmp")) if draw.random() < 0.1 else suffix
    return f"{stem} {' '.join(done)}.{suffix}", content


def flips(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.choice((1, 3, 30)) if changed else 0):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def header(data: bytes, draw: random.Random) -> bytes:
    """Random bytes in the first hundred."""
    changed = bytearray(data)
    for _ in range(draw.randrange(1, 6) if changed else 0):
        changed[draw.randrange(min(100, len(changed)))] = draw.choice(
            (0, 1, 127, 128, 255, draw.randrange(256))
        )
    return bytes(changed)


def cut(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def lost(data: bytes, draw: random.Random) -> bytes:
    start = draw.randrange(len(data) + 1)
    return data[:start] + data[start + draw.randrange(1, 300) :]


def doubled(data: bytes, draw: random.Random) -> bytes:
    start = draw.randrange(len(data) + 1)
    part = data[start : start + draw.randrange(1, 300)]
    return data[:start] + part * draw.choice((2, 20)) + data[start:]


def spliced(data: bytes, draw: random.Random) -> bytes:
    """The begin of one file and the end of another."""
    other = draw.choice(list(samples().values()))
    return data[: draw.randrange(len(data) + 1)] + other[draw.randrange(len(other)) :]


def zeros(data: bytes, draw: random.Random) -> bytes:
    start = draw.randrange(len(data) + 1)
    size = draw.randrange(1, 200)
    return data[:start] + bytes([draw.choice((0, 255))]) * size + data[start + size :]


def numbers(data: bytes, draw: random.Random) -> bytes:
    """A 16- or 32-bit number, in either order of bytes, replaced by one at a limit."""
    if len(data) < 8:
        return data
    width, code = draw.choice(((2, "H"), (4, "I")))
    value = draw.choice(SIDES) & (2 ** (8 * width) - 1)
    start = draw.randrange(min(len(data) - 4, 400))
    return data[:start] + struct.pack(draw.choice("<>") + code, value) + data[start + width :]


def sides(data: bytes, draw: random.Random) -> bytes:
    """Another width and height where the format keeps them, with the right checksum in a PNG."""
    width, height = draw.choice(SIDES), draw.choice(SIDES)
    if data[1:4] == b"PNG" and len(data) > 33:
        body = b"IHDR" + struct.pack(">II", width, height) + data[24:29]
        return data[:12] + body + struct.pack(">I", zlib.crc32(body)) + data[33:]
    if data[:2] == b"BM":
        return data[:18] + struct.pack("<II", width, height) + data[26:]
    if data[:4] == b"GIF8":
        return data[:6] + struct.pack("<HH", width & 0xFFFF, height & 0xFFFF) + data[10:]
    if data[:1] == b"P":
        return re.sub(rb"48 32", b"%d %d" % (width, height), data, count=1)
    frame = data.find(b"\xff\xc0") if b"\xff\xc0" in data else data.find(b"\xff\xc2")
    if frame > 0:
        return data[: frame + 5] + struct.pack(">HH", height & 0xFFFF, width & 0xFFFF) + data[frame + 9 :]
    return numbers(data, draw)


DAMAGES: list[Damage] = [flips, header, cut, lost, doubled, spliced, zeros, numbers, sides]


# Bombs: small files that ask for much work


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def _png(width: int, height: int, *before: bytes, colour: int = 0, pixels: bytes = b"") -> bytes:
    start = _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0))
    rest = [*before, _chunk(b"IDAT", pixels or _deflated(height * (1 + width))), _chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + start + b"".join(rest)


@cache
def _deflated(size: int) -> bytes:
    """So many zeros, deflated, without holding them all."""
    pack = zlib.compressobj(9)
    block = bytes(1 << 20)
    parts = [pack.compress(block[: min(len(block), size - start)]) for start in range(0, size, len(block))]
    return b"".join([*parts, pack.flush()])


@cache
def bombs() -> dict[str, bytes]:
    """Name -> content."""
    huge = _deflated(200 << 20)
    return {
        "just too large.png": _png(13_378, 13_378, pixels=b"x"),
        "sixty thousand.png": _png(60_000, 60_000, pixels=_deflated(1 << 20)),
        "allowed.png": _png(8_000, 8_000),
        "more pixels than declared.png": _png(40, 30, pixels=huge),
        "profile.png": _png(40, 30, _chunk(b"iCCP", b"name\0\0" + huge)),
        "text.png": _png(40, 30, _chunk(b"zTXt", b"name\0\0" + huge)),
        "texts.png": _png(
            40, 30, *(_chunk(b"zTXt", b"n%d\0\0" % each + _deflated(1 << 20)) for each in range(300))
        ),
        "international.png": _png(40, 30, _chunk(b"iTXt", b"name\0\1\0\0\0" + huge)),
        "many chunks.png": _png(40, 30, *([_chunk(b"tEXt", b"a\0b")] * 200_000)),
        "exif.png": _png(40, 30, _chunk(b"eXIf", _endless_exif())),
        "exif.jpg": _jpeg_with(_endless_exif()),
        "many profiles.jpg": _with_segments([b"ICC_PROFILE\0\1\xff" + b"\0" * 60_000] * 255),
        "comments.jpg": _with_segments([b"x" * 10] * 100_000, marker=b"\xff\xfe"),
        "scans.jpg": many_scans(3_000),
        "frames.gif": _frames(20_000),
        "large frame.gif": b"GIF89a" + struct.pack("<HH", 65_535, 65_535) + samples()["still.gif"][10:],
        "circle.tif": b"II*\0\x08\0\0\0" + b"\0\0" + struct.pack("<I", 8),
        "strips.tif": _tiff(
            {256: 40_000, 257: 4_000, 258: 8, 259: 8, 262: 1, 273: 8, 277: 1, 278: 4_000, 279: 90}
        ),
        "samples.tif": _tiff(
            {256: 4_000, 257: 4_000, 258: 8, 259: 1, 262: 2, 273: 8, 277: 60_000, 278: 4_000}
        ),
        "large.webp": _large_webp(),
        "large.ppm": b"P6\n13000 13000\n255\n" + bytes(1000),
        "digits.ppm": b"P3\n" + b"9" * 2_000_000 + b" 5\n255\n",
        "comment.ppm": b"P6\n#" + b"x" * 5_000_000,
        "large.bmp": b"BM"
        + struct.pack("<IIIIiiHHIIiiII", 0, 0, 54, 40, 13_000, -13_000, 1, 24, 0, 0, 0, 0, 0, 0),
        "run length.bmp": b"BM"
        + struct.pack("<IIIIiiHHIIiiII", 0, 0, 54, 40, 10_000, 10_000, 1, 8, 1, 0, 0, 0, 0, 0)
        + b"\xff\x01" * 100_000,
    }


def _endless_exif() -> bytes:
    """Directories that lead to each other, and an entry of four billion values."""
    entries = struct.pack("<HHII", 274, 3, 1, 6) + struct.pack("<HHII", 34665, 4, 1, 8)
    entries += struct.pack("<HHII", 305, 2, 2**32 - 1, 8)
    return b"II*\0\x08\0\0\0" + struct.pack("<H", 3) + entries + struct.pack("<I", 8)


def _jpeg_with(exif: bytes) -> bytes:
    return _with_segments([b"Exif\0\0" + exif], marker=b"\xff\xe1")


def _with_segments(bodies: list[bytes], marker: bytes = b"\xff\xe2") -> bytes:
    plain = samples()["plain.jpg"]
    parts = [marker + struct.pack(">H", len(body) + 2) + body for body in bodies]
    return plain[:2] + b"".join(parts) + plain[2:]


def many_scans(count: int) -> bytes:
    """A progressive JPEG that repeats one scan: a decoder works through all of them."""
    data = samples()["progressive.jpg"]
    frame = data.index(b"\xff\xc2")
    data = data[: frame + 5] + struct.pack(">HH", 13_000, 13_000) + data[frame + 9 :]
    start = data.index(b"\xff\xda")
    end = data.find(b"\xff\xda", start + 2)
    return data[:start] + data[start:end] * count + data[end:]


def _frames(count: int) -> bytes:
    still = samples()["moving.gif"]
    start = still.index(b"!\xf9")
    return still[:start] + still[start:-1] * count + still[-1:]


def _tiff(tags: dict[int, int]) -> bytes:
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in sorted(tags.items()))
    pixels = _deflated(1 << 16)
    start = 8 + len(pixels)
    return b"II*\0" + struct.pack("<I", start) + pixels + struct.pack("<H", len(tags)) + entries + bytes(4)


@cache
def _large_webp() -> bytes:
    return _saved(Image.new("L", (9_000, 9_000)), "WEBP", lossless=True, method=0, quality=0)
