"""Which columns of a table hold text instead of label codes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: a column with this many different values of its own, more often than not, is not a category; nor is one with this
#: many cells of which none has a value of another column
NO_CATEGORY = 3


def text_columns(
    codes: NDArray[np.int32], bad: NDArray[np.bool_], lettered: NDArray[np.bool_], blank: int
) -> list[int]:
    """Return the columns that hold text, unless all of them would.

    Words that several columns share may be codes of the user's own, so only the values that no other column has
    speak against a column. It holds text if they are most of its written cells and of many kinds, or if they are
    all it has, in letters, while other columns hold other codes.

    Args:
        codes: (N, C) number of each cell's code.
        bad: (N, C) cells that are not known codes.
        lettered: (N, C) cells with a letter in them; a single strange number may be a code.
        blank: number of the blank code.
    """
    columns = range(codes.shape[1])
    written = codes != blank
    found = [np.unique(codes[written[:, column], column]) for column in columns]
    columns_with = np.bincount(np.concatenate(found), minlength=int(codes.max()) + 1)
    alone = (columns_with < 2)[codes] if codes.shape[1] > 1 else np.ones_like(bad)
    own = (bad & alone & written).sum(axis=0)
    cells = written.sum(axis=0)
    kinds = np.array([len(np.unique(codes[bad[:, each] & alone[:, each], each])) for each in columns])
    various = (2 * own > cells) & (kinds >= NO_CATEGORY)
    apart = (
        ((bad & alone & lettered).sum(axis=0) == cells)
        & (cells >= NO_CATEGORY)
        & bool((written & ~(bad & alone)).any())
    )
    chosen = np.flatnonzero(various | apart).tolist()
    return chosen if len(chosen) < len(columns) else []
