"""Photos for the page: upright, small enough for a screen, in a format that every browser shows."""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from PIL.Image import Image

from sarb.data.images import decode
from sarb.serve.recogniser import SIDE, Recogniser, Seen

Kept = TypeVar("Kept")
#: longest side of a thumbnail in pixels
SMALL = 320
#: how many photos, thumbnails and model outputs are kept in memory
REMEMBERED = 64
SMALL_REMEMBERED = 512


def to_jpeg(picture: Image, side: int = SIDE) -> bytes:
    """Return a picture as JPEG, with no side longer than ``side``. The picture itself is made that small."""
    picture.thumbnail((side, side))
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=88)
    return buffer.getvalue()


class Pictures:
    """The photos of a table by row, and what the model sees in them; the last ones are kept in memory.

    A request cannot name a file: it can ask for rows 0 to N − 1 and nothing else. All methods raise an
    ``ImageError`` if the file cannot be read.

    Args:
        files: N image files.
        recogniser: the model.
        categories: C names in the order of the table, which may differ from the model's.
    """

    def __init__(self, files: Sequence[Path], recogniser: Recogniser, categories: Sequence[str]) -> None:
        self._files = files
        self._recogniser = recogniser
        self._columns = [recogniser.categories.index(name) for name in categories]
        self._decoders = recogniser.decoders
        self.photo = Recent(self._photo, REMEMBERED)
        self.thumbnail = Recent(self._thumbnail, SMALL_REMEMBERED)
        self.seen = Recent(self._seen, REMEMBERED)

    def __len__(self) -> int:
        return len(self._files)

    async def _photo(self, row: int) -> bytes:
        file = self._files[row]
        return await self._decoders.run(file, lambda _: to_jpeg(decode(file, SIDE)))

    async def _thumbnail(self, row: int) -> bytes:
        file = self._files[row]
        return await self._decoders.run(file, lambda _: to_jpeg(decode(file, draft=SMALL), SMALL))

    async def _seen(self, row: int) -> Seen:
        file = self._files[row]
        seen = await self._decoders.run(file, lambda _: self._recogniser.look(self._recogniser.decode(file)))
        return Seen(seen.probabilities[self._columns], seen.heat[self._columns])


class Recent(Generic[Kept]):
    """A function of a row that remembers its last results; for the event loop."""

    def __init__(self, make: Callable[[int], Awaitable[Kept]], size: int) -> None:
        self._make = make
        self._size = size
        self._kept: OrderedDict[int, Kept] = OrderedDict()

    async def __call__(self, row: int) -> Kept:
        """Return the result for a row."""
        if row in self._kept:
            self._kept.move_to_end(row)
            return self._kept[row]
        made = self._kept[row] = await self._make(row)
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)
        return made
