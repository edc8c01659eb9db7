"""Photos for the page: upright, small enough for a screen, in a format that every browser shows."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from PIL.Image import Image

from sarb.data.images import decode
from sarb.serve.recogniser import Recogniser, Seen

#: longest side in pixels, and how many photos are kept in memory
SIDE = 1024
REMEMBERED = 64


def to_jpeg(picture: Image, side: int = SIDE) -> bytes:
    """Return a picture as JPEG, with no side longer than ``side``."""
    small = picture.copy()
    small.thumbnail((side, side))
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=88)
    return buffer.getvalue()


class Pictures:
    """The photos of a table by row, and what the model sees in them; the last ones are kept in memory.

    A request cannot name a file: it can ask for rows 0 to N − 1 and nothing else.

    Args:
        files: N image files.
        recogniser: the model.
        categories: C names in the order of the table, which may differ from the model's.
    """

    def __init__(self, files: Sequence[Path], recogniser: Recogniser, categories: Sequence[str]) -> None:
        self._files = files
        self._recogniser = recogniser
        self._columns = [recogniser.categories.index(name) for name in categories]
        self._shown: OrderedDict[int, tuple[bytes, Seen]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, row: int) -> tuple[bytes, Seen]:
        """Return the JPEG and what the model sees in it.

        Raises:
            ImageError: the file cannot be read.
        """
        with self._lock:
            if row in self._shown:
                self._shown.move_to_end(row)
                return self._shown[row]
        picture = decode(self._files[row])
        seen = self._recogniser.look(picture)
        ordered = Seen(seen.probabilities[self._columns], seen.heat[self._columns])
        shown = (to_jpeg(picture), ordered)
        with self._lock:
            self._shown[row] = shown
            while len(self._shown) > REMEMBERED:
                self._shown.popitem(last=False)
        return shown
