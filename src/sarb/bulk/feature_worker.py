"""The worker for features: rows of one part into the array, then a record of them. See :mod:`sarb.bulk.features`."""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sarb.batches.prefetch import Ahead
from sarb.bulk.items import Item
from sarb.bulk.job import Job
from sarb.bulk.listing import Listing
from sarb.bulk.parts import Part, failed
from sarb.bulk.records import ARRAY, PLAN, TRUNK, place_of, read_record, record_of, right, rows_of
from sarb.bulk.storage import Storage
from sarb.errors import SarbError
from sarb.files import json_text

if TYPE_CHECKING:
    from sarb.batches.engines import Engine
    from sarb.networks.backbones.stages import Backbone

Key = tuple[int, int]


class FeatureWorker:
    """Computes parts of one array, one after the other."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.storage = Storage(job.out)
        self.array = Path(job.out, ARRAY)

    def do(self, number: int) -> Part:
        """Return a part: as it is if its rows are there, else computed; its ``error`` says why there is none."""
        try:
            record = read_record(self.storage, number, self.job.identity)
            if record is not None and right(self.array, self.plan, number, record):
                return self._part(number, record, fresh=False)
            return self._made(number)
        except (SarbError, OSError) as error:
            return failed(number, error)

    @cached_property
    def plan(self) -> dict[str, Any]:
        """What the command has written."""
        found: dict[str, Any] = json.loads(self.storage.read(PLAN) or b"{}")
        if found.get("identity") != self.job.identity:
            raise SarbError(
                f"{self.job.out}: not what this work began with, or not here. Every worker must see this folder: set "
                "SARB_CACHE to a folder on a disk that all of them share"
            )
        return found

    @cached_property
    def listing(self) -> Listing:
        """The images of all parts."""
        return Listing(self.storage)

    @cached_property
    def transform(self) -> Any:
        """Image -> (3, S, S)."""
        from sarb.data.images import EvalTransform, TrainTransform

        kinds = {kind.__name__: kind for kind in (EvalTransform, TrainTransform)}
        arguments = dict(self.plan["transform"])
        return kinds[arguments.pop("kind")](**arguments)

    @cached_property
    def backbone(self) -> Backbone:
        """The backbone with the weights of the command; an error if they differ."""
        import torch
        from safetensors.torch import load

        from sarb.networks.backbones.base import create_backbone
        from sarb.networks.backbones.fold import folded

        torch.set_num_threads(self.job.threads)
        made = create_backbone(weights=None, **self.plan["backbone"])
        made.load_state_dict(load(self.storage.read(TRUNK) or b""))
        made.eval()
        if made.frozen_fingerprint() != self.job.model:
            raise SarbError(f"{self.storage.place(TRUNK)}: not the backbone that this work began with")
        return folded(made)

    def _engine(self, number: int) -> Engine:
        """What runs the frozen stages fastest on this computer, chosen once per worker."""
        from sarb.batches.engines import choose_engine

        return choose_engine(
            self.backbone,
            lambda: (
                self._pictures(number)[
                    [(0, row) for row in rows_of(self.plan, number)[: self.job.batch_size]]
                ].images
            ),
            self.plan["shape"][0],
            lambda line: None,
            self.job.options["engine"],
        )

    def _pictures(self, number: int) -> Any:
        from sarb.batches.loader import Pictures

        rows = rows_of(self.plan, number)
        paths = _Rows(rows.start, self.listing.chunk(number), self.plan["shape"][0])
        return Pictures(paths, np.zeros((len(paths), 0), np.int8), [self.transform], self.plan["seed"])

    def _batches(self, number: int) -> list[list[Key]]:
        """Keys of the images of a part, as :class:`sarb.batches.loader.Pictures` takes them."""
        rows, size = rows_of(self.plan, number), self.job.batch_size
        keys = [(self.plan["number"] or 0, row) for row in rows]
        return [keys[start : start + size] for start in range(0, len(keys), size)]

    def _made(self, number: int) -> Part:
        import torch

        from sarb.batches.features import activations

        plan = self.plan
        rows = rows_of(plan, number)
        engine = self._engine(number)
        begun = time.perf_counter(), time.process_time()
        pictures = self._pictures(number)
        batches = self._batches(number)
        unreadable: list[tuple[int, str]] = []
        crc = 0
        with self.array.open("r+b") as file:
            file.seek(place_of(self.array, rows.start))
            for keys, batch in zip(batches, Ahead(pictures.views, pictures.join, batches, 1), strict=True):
                values = np.full((len(keys), *plan["shape"][1:]), np.nan, np.float16)  # NaN: unreadable
                unreadable += batch.failures
                if len(batch.index):
                    with torch.inference_mode():
                        values[batch.index.numpy() - keys[0][1]] = activations(engine, batch.images).numpy()
                content = values.tobytes()
                crc = zlib.crc32(content, crc)
                file.write(content)
            file.flush()
            os.fsync(file.fileno())
        record = {
            "identity": self.job.identity,
            "number": number,
            "crc32": crc,
            "unreadable": unreadable,
            "engine": engine.name,
        }
        self.storage.write(record_of(number), json_text(record).encode())
        return self._part(
            number, record, seconds=time.perf_counter() - begun[0], cpu_seconds=time.process_time() - begun[1]
        )

    def _part(self, number: int, record: dict[str, Any], **more: Any) -> Part:
        images = len(rows_of(self.plan, number))
        left_out = record["unreadable"]
        return Part(number, images, images - len(left_out), len(left_out), **more)


class _Rows(Sequence[Path]):
    """The paths of some rows of a data set, by their numbers in the whole."""

    def __init__(self, first: int, items: list[Item], total: int) -> None:
        self.first = first
        self.items = items
        self.total = total

    def __len__(self) -> int:
        return self.total

    def __getitem__(self, row: Any) -> Any:
        return Path(self.items[row - self.first].place)
