"""Which images of a source are meant: its own splits, without the share that was drawn at random, or all."""

from __future__ import annotations

from sarb.data.assemble import RANDOM
from sarb.data.dataset import Data, Dataset
from sarb.errors import ConfigError, DataError, unknown_name

#: the name of all images together
ALL = "all"
NAMES = ("train", "valid", "test", ALL)


def drawn(data: Data) -> list[str]:
    """Return the splits that were drawn at random, because the source has none."""
    return [name for name in data.splits if str(data.notes.get(f"{name}_split", "")).startswith(RANDOM)]


def own_splits(data: Data) -> list[str]:
    """Return the splits that the source itself has; none if it does not divide its images."""
    found = [name for name in data.splits if name not in drawn(data)]
    return [] if found == ["train"] else found


def chosen(data: Data, split: str | None = None) -> tuple[Dataset, str]:
    """Return the images of a split and its name.

    Args:
        data: from :func:`sarb.load`.
        split: ``train``, ``valid``, ``test`` or ``all``. None takes the test images of a source that has
            splits of its own, and all images of a source that has none.

    Raises:
        ConfigError: there is no split of that name.
        DataError: the split has no images.
    """
    asked = split
    split = split or ("test" if own_splits(data) else ALL)
    if split not in NAMES:
        raise ConfigError([unknown_name("split", split, NAMES)])
    if split == ALL:
        return data.all, ALL
    if split not in data.splits or (asked is None and split in drawn(data)):
        some = ", ".join(own_splits(data) or data.splits)
        raise DataError(f"{data.name}: has no images in split '{split}'; choose {some} or all")
    return data.splits[split], split
