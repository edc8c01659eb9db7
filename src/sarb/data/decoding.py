"""``decode``: any image file, bytes, Pillow image or array as upright 8-bit RGB (Pillow and NumPy only)."""

from __future__ import annotations

import ctypes
import errno
import io
import struct
import threading
import warnings
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile, TiffImagePlugin, WebPImagePlugin, _imaging  # noqa: F401

from sarb.errors import ImageError
from sarb.files import open_regular

Image.preinit()  # registers JPEG, PNG, BMP, GIF and PPM; the import above registers TIFF and WebP
#: the only decoders in use: others can run programs or read other files (PostScript …); the JPEG decoder
#: also opens MPO
FORMATS = ("JPEG", "PNG", "BMP", "GIF", "PPM", "WEBP", "TIFF")
#: larger images are refused before decoding; this one takes 0.7 GB, and Pillow has the same limit
MAX_PIXELS = 178_956_970
#: start of a scan in a JPEG, and most pixels times scans: common encoders make 10 scans, so the largest image has room
SCAN = b"\xff\xda"
MOST_SCANNED = 20 * MAX_PIXELS

Source = str | Path | bytes | BinaryIO | Image.Image | NDArray[Any]

# TIFF and EXIF tags
_BITS_PER_SAMPLE = 258
_PHOTOMETRIC = 262
_ORIENTATION = 274
#: EXIF orientation -> operation that makes the image upright
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_ONE_AT_A_TIME = threading.Lock()


def _silence_libtiff() -> None:
    """Keep libtiff from printing: it writes a line to stderr for each bad line of an image, without a file name."""
    library = ctypes.CDLL(_imaging.__file__)
    for name in (
        "TIFFSetErrorHandler",
        "TIFFSetErrorHandlerExt",
        "TIFFSetWarningHandler",
        "TIFFSetWarningHandlerExt",
    ):
        handler = getattr(library, name)
        handler.argtypes, handler.restype = [ctypes.c_void_p], ctypes.c_void_p
        handler(None)


with suppress(OSError, AttributeError):  # another Pillow may hide its libtiff; then it talks
    _silence_libtiff()


def decode(source: Source, draft: int | None = None) -> Image.Image:
    """Return any image as upright 8-bit RGB.

    EXIF orientation is applied, transparent pixels are blended with white, 16 bits are scaled to 8, and
    animations give their first frame; docs/images.md has every rule.

    Args:
        source: path, encoded bytes, binary file, Pillow image, or array of shape (H, W), (H, W, 1),
            (H, W, 3) or (H, W, 4) and type uint8, uint16 or bool.
        draft: allow decoding a JPEG at 1/2, 1/4 or 1/8, which is faster but not identical. No side gets
            smaller than this, and both sides must divide evenly, so that the field of view stays the same.

    Raises:
        ImageError: one line with the file and the reason.
    """
    name = _name(source)
    try:
        image = _open(source, draft)
        return _upright(_to_rgb(image), image.getexif)
    except ImageError as error:
        raise ImageError(f"{name}: {error}") from None
    except Exception as error:  # decoders raise all sorts of errors on damaged files
        raise ImageError(f"{name}: {_reason(error)}") from error


@dataclass(frozen=True)
class Header:
    """What an image file says about itself.

    ``width`` and ``height`` are as stored; ``scale``: ``draft`` makes it smaller by this; ``memory``: bytes that it
    takes at most to decode it.
    """

    name: str
    width: int
    height: int
    scale: int
    memory: int


def read_header(source: Source, draft: int | None = None) -> Header:
    """Return the size of an image without decoding it; ``draft`` as for :func:`decode`.

    Raises:
        ImageError: one line with the file and the reason.
    """
    name = _name(source)
    try:
        image = _open(source, draft, load=False)
        pixels = image.width * image.height
        jpeg = getattr(image, "format", "") in ("JPEG", "MPO")
        scale = _draft_scale(image, draft) if jpeg and draft is not None else 1
        # libjpeg holds all of a progressive file before it shrinks it
        held = 8 * pixels if "progression" in image.info else 8 * pixels // scale**2
        return Header(name, image.width, image.height, scale, held if jpeg else 20 * pixels)
    except ImageError as error:
        raise ImageError(f"{name}: {error}") from None
    except Exception as error:  # as in decode
        raise ImageError(f"{name}: {_reason(error)}") from error


def _name(source: Source) -> str:
    if isinstance(source, str | Path):
        return str(source)
    if isinstance(source, np.ndarray):
        return f"array of shape {source.shape}"
    if isinstance(source, bytes):
        return f"{len(source)} bytes of image data"
    return str(getattr(source, "name", None) or getattr(source, "filename", None) or type(source).__name__)


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, IsADirectoryError):
        return "this is a folder, not an image file"
    if isinstance(error, Image.DecompressionBombError):
        return f"too large, more than {MAX_PIXELS:,} pixels"
    if isinstance(error, MemoryError):
        return "not enough memory to decode it"
    if isinstance(error, OSError) and error.errno == errno.EINVAL:
        return f"this {error.strerror}"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read ({error.strerror})"
    return f"damaged image file ({' '.join(str(error).split()) or type(error).__name__})"


def _open(source: Source, draft: int | None, load: bool = True) -> Image.Image:
    if isinstance(source, Image.Image):
        _check_size(source)
        return source
    if isinstance(source, np.ndarray):
        return _from_array(source)
    if isinstance(source, str | Path):
        with open_regular(source) as file:
            return _load(file, draft, load)
    return _load(io.BytesIO(source) if isinstance(source, bytes) else source, draft, load)


def _load(file: BinaryIO, draft: int | None, load: bool) -> Image.Image:
    file = file if file.seekable() else io.BytesIO(file.read())
    image = _identify(file)
    _check_size(image)
    if not load:
        return image
    if "progressive" in image.info:
        _check_scans(image, file)
    # Pillow warns when it loads a TIFF over its first limit, half of ours. Warning filters are shared by all
    # threads, so they are changed only for these rare images, one at a time.
    large = image.width * image.height > (Image.MAX_IMAGE_PIXELS or MAX_PIXELS)
    if draft is not None:
        scale = _draft_scale(image, draft)
        image.draft(None, (image.width // scale, image.height // scale))
    with _ONE_AT_A_TIME if large else nullcontext(), warnings.catch_warnings() if large else nullcontext():
        if large:
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        image.load()
    return image


def _draft_scale(image: Image.Image, least: int) -> int:
    """Return the factor to shrink a JPEG by: both sides divide evenly and stay at least ``least``."""
    for scale in (8, 4, 2):
        if all(side % scale == 0 and side // scale >= least for side in image.size):
            return scale
    return 1


def _identify(file: BinaryIO) -> ImageFile.ImageFile:
    """Open a file like ``Image.open``, but only in our formats and without its warning on large images."""
    file.seek(0)
    prefix = file.read(16)
    for name in FORMATS:
        make, accept = Image.OPEN[name]
        accepted = accept is None or accept(prefix)
        if isinstance(accepted, str):  # this Pillow was built without the decoder
            raise ImageError(accepted)
        if accepted:
            file.seek(0)
            try:
                return make(file, "")
            except (SyntaxError, IndexError, KeyError, TypeError, struct.error) as error:
                raise ImageError(f"damaged, or an unsupported kind of {name} ({error})") from error
    raise ImageError(f"not an image ({', '.join(FORMATS)} are supported)" if prefix else "the file is empty")


def _check_size(image: Image.Image) -> None:
    if image.width * image.height > MAX_PIXELS:
        raise ImageError(
            f"too large, {image.width} × {image.height} pixels (at most {MAX_PIXELS:,} are allowed)"
        )


def _check_scans(image: Image.Image, file: BinaryIO) -> None:
    """Refuse a progressive JPEG that repeats its scans: each is a pass over all pixels, of a few bytes in the file."""
    place = file.tell()
    file.seek(0)
    scans = 0
    last = b""
    while block := file.read(1 << 20):
        scans += (last + block).count(SCAN)
        last = block[-1:]
    file.seek(place)
    if scans * image.width * image.height > MOST_SCANNED:
        raise ImageError(f"a JPEG with {scans:,} scans, which takes too long to decode; save it again")


def _from_array(array: NDArray[Any]) -> Image.Image:
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (3, 4)) or not array.size:
        raise ImageError("expected (H, W), (H, W, 1), (H, W, 3) or (H, W, 4)")
    if array.dtype == np.bool_:
        array = array * np.uint8(255)
    if array.dtype == np.uint16:
        array = _eight_bit(array)
    if array.dtype != np.uint8:
        raise ImageError(f"expected uint8, uint16 or bool, got {array.dtype}")
    return Image.fromarray(np.ascontiguousarray(array))


def _eight_bit(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Scale 0..65535 to 0..255, rounded."""
    return ((array.astype(np.uint32) + 128) // 257).astype(np.uint8)


def _upright(image: Image.Image, exif: Callable[[], Image.Exif]) -> Image.Image:
    try:
        orientation = exif().get(_ORIENTATION, 1)
    except Exception:  # the image is usable even if its EXIF data is damaged
        return image
    if orientation in _UPRIGHT:
        image = image.transpose(_UPRIGHT[orientation])
        image.info = {}  # so that nobody rotates the result again
    return image


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):
        return Image.fromarray(_eight_bit(_sixteen_bit(image))).convert("RGB")
    if image.mode == "F":
        raise ImageError("floating-point pixels have no standard range; convert the image to 8 or 16 bits")
    image = image.convert("LA") if image.mode == "La" else image  # the only conversion Pillow has for La
    key = image.info.get("transparency")
    # Pillow reduces 16-bit pixels to 8 bits but not the transparent colour, so it would match wrong pixels
    deep = isinstance(key, tuple) and max(key) > 255
    if deep or not image.has_transparency_data:
        return image if image.mode == "RGB" else image.convert("RGB")
    layer = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")


def _sixteen_bit(image: Image.Image) -> NDArray[Any]:
    """Return grey values (H, W) from 0 (black) to 65535 (white); transparent pixels are white."""
    array = np.asarray(image)
    if array.min() < 0 or array.max() > 65535:
        raise ImageError(
            f"pixels from {array.min()} to {array.max()} do not fit in 16 bits; "
            "convert the image to 8 or 16 bits"
        )
    if "transparency" in image.info:
        array = np.where(array == image.info["transparency"], 65535, array)
    tags = getattr(image, "tag_v2", {})  # only a TIFF has them
    if tags.get(_BITS_PER_SAMPLE) == (12,):
        array = array * 16 + array // 256
    return 65535 - array if tags.get(_PHOTOMETRIC) == 0 else array  # 0 means that white is zero
