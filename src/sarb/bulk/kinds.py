"""Which worker does a job."""

from __future__ import annotations

from typing import Protocol

from sarb.bulk.feature_worker import FeatureWorker
from sarb.bulk.job import FEATURES, Job
from sarb.bulk.parts import Part
from sarb.bulk.scoring import Worker


class DoesParts(Protocol):
    """Does parts of a job by number."""

    def do(self, number: int) -> Part:
        """Return the part; its ``error`` says why there is none."""


def worker_of(job: Job) -> DoesParts:
    """The worker of a kind of job."""
    return FeatureWorker(job) if job.kind == FEATURES else Worker(job)
