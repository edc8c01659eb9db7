"""``_plan.json``: what the parts of a folder are made from. Another model or other options never mix with them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from sarb.bulk.items import Item
from sarb.bulk.listing import FILE as LISTING
from sarb.bulk.listing import Fingerprint, Listing, write_listing
from sarb.bulk.storage import Storage
from sarb.errors import SarbError
from sarb.files import json_text
from sarb.runs.folder import ModelFolder

FILE = "_plan.json"
FORMAT = 1


@dataclass(frozen=True)
class Plan:
    """The facts that decide the content of every part, and how many images and parts there are."""

    kind: str
    model: str
    options: dict[str, Any]
    listing: str
    images: int
    part_size: int

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return -(-self.images // self.part_size)

    @property
    def identity(self) -> str:
        """Hash of all facts."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def model_checksum(model: ModelFolder) -> str:
    """Hash of everything that decides the scores and how they are read: weights, configuration, calibration."""
    digest = hashlib.sha256(model.checksum().encode())
    digest.update(model.config_file.read_bytes())
    calibration = model.calibration()
    digest.update(b"" if calibration is None else calibration.to_bytes())
    return digest.hexdigest()


def settle(
    storage: Storage, made: Callable[[str, int], Plan], items: Callable[[], Iterable[Item]], size: int
) -> Plan:
    """Write the plan and the listing of a new folder, or check that a folder was begun with the same plan.

    Args:
        storage: the folder.
        made: the plan of a hash and number of images.
        items: lists the images, from the start with every call.
        size: images per part.
    """
    seen = Fingerprint()
    before = read_plan(storage)
    if before is None:
        if storage.exists("part-000000.parquet"):
            raise SarbError(f"{storage.folder}: holds parts, but no {FILE}; choose another folder")
        write_listing(storage, seen.watch(items()), size)
        if not seen.images:
            storage.remove(LISTING)
            raise SarbError("no images: the sources are empty")
        plan = made(seen.text(), seen.images)
        storage.write(FILE, json_text({"format": FORMAT, "identity": plan.identity, **asdict(plan)}).encode())
        return plan
    for _ in seen.watch(items()):
        pass
    plan = made(seen.text(), seen.images)
    if plan != before:
        raise SarbError(
            f"{storage.folder}: was begun with {_difference(before, plan)}; choose another folder"
        )
    if not _listed(storage, plan):
        write_listing(storage, items(), size)
    return plan


def _listed(storage: Storage, plan: Plan) -> bool:
    """Whether the listing is there; whether all of it is whole shows when a part is made."""
    try:
        return Listing(storage).chunks == plan.parts
    except SarbError:
        return False


def read_plan(storage: Storage) -> Plan | None:
    """Return the plan of a folder; None if it has none."""
    content = storage.read(FILE)
    if content is None:
        return None
    try:
        found = json.loads(content)
        identity = found.pop("identity")
        known = found.pop("format")
        plan = Plan(**found)
        if known != FORMAT or plan.identity != identity:
            raise ValueError("it was changed, or is of another version of sarb")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SarbError(
            f"{storage.place(FILE)}: not a plan of ours ({error}); choose another folder"
        ) from None
    return plan


def _difference(before: Plan, now: Plan) -> str:
    """In words, what is not the same."""
    for name in ("kind", "model", "options"):
        old, new = getattr(before, name), getattr(now, name)
        if old != new:
            if name == "model":
                return "another model or calibration"
            return f"other {'options' if name == 'options' else 'work'} ({old}, now {new})"
    if before.part_size != now.part_size:
        return f"parts of {before.part_size:,} images (now {now.part_size:,})"
    if before.images != now.images:
        return f"other images ({before.images:,} of them, now {now.images:,})"
    return f"other images or labels ({before.images:,}, as many as now)"
