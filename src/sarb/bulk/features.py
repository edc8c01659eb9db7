"""Features behind ``sarb train`` and ``sarb calibrate`` by many workers: one file of the feature cache.

The command makes the array in a folder ``KEY.parts`` of the cache. Each worker writes its rows into the array, and
then a record with their checksum. The command compares every record with the array, which tells when workers do not
share the disk. After a stop the same command goes on: rows with a right record are not computed again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sarb.batches.cache_files import new_array, parts_of
from sarb.bulk import ranks
from sarb.bulk.engines import check_engine, do
from sarb.bulk.items import Item
from sarb.bulk.job import FEATURES, Job
from sarb.bulk.listing import write_listing
from sarb.bulk.records import ARRAY, PLAN, TRUNK, read_record, right
from sarb.bulk.storage import Storage
from sarb.data.readers.parquet import need_pyarrow
from sarb.errors import ConfigError, SarbError, named
from sarb.files import json_text

if TYPE_CHECKING:
    from sarb.batches.features import Computed, View
    from sarb.networks.backbones.stages import Backbone
    from sarb.progress import Progress

#: images per part: the last worker to finish is waited for
PART_SIZE = 256
FORMAT = 1


@dataclass(frozen=True)
class Helpers:
    """Who computes.

    Attributes:
        engine: ``local`` or ``ray``.
        address: of a Ray cluster; None starts one on this computer.
        workers: processes or actors; 0 is one per processor.
        part_size: images per part.
        batch_size: images per step.
    """

    engine: str
    address: str | None = None
    workers: int = 0
    part_size: int = PART_SIZE
    batch_size: int = 32

    def check(self) -> None:
        """Raise for an engine that cannot be used, before any work is done."""
        need_pyarrow(Path("features"))
        check_engine(self.engine, self.address, self.workers)
        if ranks.world() > 1:
            raise ConfigError(["engine local starts its own workers; run it without torchrun"])
        if self.part_size < 1:
            raise ConfigError([f"part_size: expected at least one image per part, got {self.part_size}"])

    def compute(
        self, file: Path, backbone: Backbone, view: View, shape: tuple[int, ...], progress: Progress
    ) -> Computed:
        """Compute a file of the cache, see :data:`sarb.batches.features.Compute`."""
        from sarb.batches.features import Computed, title
        from sarb.batches.loader import check_readable

        folder = parts_of(file).absolute()
        plan = self._plan(file, backbone, view, shape)
        storage = Storage(str(folder))
        _begin(storage, plan, backbone, view, self.part_size)
        array = folder / ARRAY
        unreadable = dict[int, str]()
        engines = set[str]()
        wanted = {"engine": plan["engine"]}
        job = Job(
            FEATURES,
            file.stem,
            str(folder),
            plan["identity"],
            plan["trunk"],
            wanted,
            self.batch_size,
            threads=1,
        )
        parts = -(-shape[0] // self.part_size)
        with progress.bar(title(view), shape[0]) as advance:
            for part in do(job, parts, self.engine, self.address, self.workers):
                if part.error:
                    raise SarbError(part.error)
                record = read_record(storage, part.number, plan["identity"])
                if record is None or not right(array, plan, part.number, record):
                    raise SarbError(
                        f"{array}: part {part.number} is not what its worker wrote. Every worker must see this folder: "
                        "set SARB_CACHE to a folder on a disk that all of them share"
                    )
                engines.add(record["engine"])
                unreadable.update((row, reason) for row, reason in record["unreadable"])
                check_readable(list(unreadable.values()), shape[0])
                advance(part.images)
        return Computed(array, dict(sorted(unreadable.items())), ", ".join(sorted(engines)))

    def _plan(self, file: Path, backbone: Backbone, view: View, shape: tuple[int, ...]) -> dict[str, Any]:
        """All that a worker needs beside images and weights; ``identity`` is the hash of it."""
        from sarb.batches.engines import wanted_engine

        if backbone.made_from is None:
            raise SarbError(
                f"{type(backbone).__name__}: a backbone that was not made by its name cannot be sent to workers; "
                f"leave out {named('engine')}"
            )
        plan = {
            "format": FORMAT,
            "key": file.stem,
            "trunk": backbone.frozen_fingerprint(),
            "backbone": {
                **backbone.made_from,
                **backbone.described(),
                "train_stages": backbone.train_stages,
                "frozen_norms": backbone.frozen_norms,
            },
            "transform": {"kind": type(view.transform).__name__, **view.transform.config()},
            "number": view.number,
            "seed": view.seed,
            "shape": list(shape),
            "part_size": self.part_size,
            "batch_size": self.batch_size,
            "engine": wanted_engine(),
        }
        identity = hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()
        return {**plan, "identity": identity}


def _begin(storage: Storage, plan: dict[str, Any], backbone: Backbone, view: View, size: int) -> None:
    """Make the folder, or keep one that was begun with the same plan."""
    from safetensors.torch import save

    folder = Path(storage.folder)
    written = json_text(plan).encode()
    if storage.read(PLAN) == written:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    new_array(folder / ARRAY, tuple(plan["shape"]))
    write_listing(storage, (Item(str(path), str(path.absolute())) for path in view.dataset.paths), size)
    state = {key: value.detach().cpu().contiguous() for key, value in backbone.state_dict().items()}
    storage.write(TRUNK, save(state))
    storage.write(PLAN, written)  # last: a folder with a plan has everything else


@contextmanager
def features_by(
    engine: str | None,
    address: str | None = None,
    workers: int = 0,
    part_size: int = PART_SIZE,
    batch_size: int = 32,
) -> Iterator[None]:
    """While this lasts, features that are not in the cache yet are computed by many workers.

    Args:
        engine: ``local`` (processes of this computer) or ``ray``; None changes nothing.
        address: Ray cluster to use; None starts one on this computer.
        workers: processes or actors; 0 is one per processor.
        part_size: images per part.
        batch_size: images per step.

    >>> with features_by("ray", address="auto"):  # doctest: +SKIP
    ...     sarb.fit(data.train)
    """
    if engine is None:
        yield
        return
    from sarb.batches.features import computed_by

    helpers = Helpers(engine, address, workers, part_size, batch_size)
    helpers.check()
    with computed_by(helpers.compute):
        yield
