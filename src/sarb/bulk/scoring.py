"""The worker: one chunk of images to one part. Every engine uses it, so every engine writes the same bytes.

Threads of torch and the batches inside a chunk are fixed by the job. The model is loaded once, and only if a part is
missing.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sarb.batches.prefetch import Ahead
from sarb.bulk.items import Item, Picture, is_remote
from sarb.bulk.job import COMPLETE, Job
from sarb.bulk.listing import Listing
from sarb.bulk.parts import Part, failed, find_part, write_part
from sarb.bulk.plan import model_checksum
from sarb.bulk.storage import Storage
from sarb.bulk.tables import completed, predicted
from sarb.bulk.totals import counted
from sarb.errors import SarbError
from sarb.labelling.calibration import Calibration
from sarb.labelling.completion import complete
from sarb.labels import LabelMatrix
from sarb.runs.lookup import find_model
from sarb.scores import Scores

if TYPE_CHECKING:
    from sarb.model import Model

#: threads that read and decode ahead: a local disk answers at once, an object store is waited for
LOCAL_THREADS = 1
REMOTE_THREADS = 16


class Worker:
    """Does the chunks of a job, one after the other."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.storage = Storage(job.out)

    def do(self, number: int) -> Part:
        """Return a part: as it is if it is there and whole, else computed; its ``error`` says why there is none."""
        try:
            return find_part(self.storage, self.job, number) or self._made(number)
        except (SarbError, OSError) as error:
            return failed(number, error)

    def _made(self, number: int) -> Part:
        model = self.model
        items = self.listing.chunk(number)
        begun = time.perf_counter(), time.process_time()
        raw, rows, skipped = self._scores(model, items)
        counts: dict[str, Any] = {}
        if self.job.kind == COMPLETE:
            filled = complete(raw, self._given(items, rows, raw), self.calibration, **self.job.options)
            table = completed(filled)
            counts = counted(filled)
        else:
            table = predicted(raw, self.calibration, self.job.options)
        part = write_part(self.storage, self.job, number, table, len(items), skipped, counts)
        seconds = time.perf_counter() - begun[0]
        return replace(part, seconds=seconds, cpu_seconds=time.process_time() - begun[1])

    @cached_property
    def model(self) -> Model:
        """The model of the job; an error if it is not the one that the work began with."""
        import torch

        from sarb.model import load_model

        torch.set_num_threads(self.job.threads)
        if model_checksum(find_model(self.job.run).model) != self.job.model:
            raise SarbError(f"{self.job.run}: is not the model that {self.job.out} was begun with")
        return load_model(self.job.run)

    @cached_property
    def calibration(self) -> Calibration:
        """How to read the scores."""
        return self.model.calibration()

    @cached_property
    def listing(self) -> Listing:
        """The images of all chunks."""
        return Listing(self.storage)

    def _scores(self, model: Model, items: list[Item]) -> tuple[Scores, Any, list[tuple[str, str]]]:
        """Scores of the images that can be read, their places among the items, and (name, reason) of the others."""
        from sarb.batches.loader import Batches, Pictures
        from sarb.inference.prediction import infer

        pictures = [Picture(item) for item in items]
        source = Pictures(pictures, np.zeros((len(items), 0), np.int8), [model.transform])
        threads = REMOTE_THREADS if any(is_remote(item.place) for item in items) else LOCAL_THREADS
        batches = Batches(len(items), self.job.batch_size)
        logits, rows, failures = infer(model.network, Ahead(source.views, source.join, batches, threads))
        outage = next((picture for picture in pictures if picture.outage is not None), None)
        if outage is not None:
            raise SarbError(
                f"{outage.name}: cannot be reached ({outage.outage}); the same command goes on where it stopped"
            )
        names = [items[row].name for row in rows]
        return (
            Scores(logits, model.categories, names),
            rows,
            [(items[place].name, reason) for place, reason in failures],
        )

    def _given(self, items: list[Item], rows: Any, raw: Scores) -> LabelMatrix:
        """Known labels of the images that could be read; an image of a plain list has none."""
        values = np.zeros(raw.shape, np.int8)
        for target, row in zip(values, rows, strict=True):
            if items[row].given:
                target[...] = np.frombuffer(items[row].given, np.int8)
        return LabelMatrix(values, raw.categories, raw.paths)
