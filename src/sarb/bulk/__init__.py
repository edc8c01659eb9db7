"""Millions of images: listed, cut into chunks, scored by workers, written as Parquet parts with a manifest.

items       one image: its name, and where its bytes are
sources     folders, files and addresses to images, lazily and in a fixed order
lists       tables with a column of image names: CSV, TSV, Parquet
shards      images inside WebDataset shards (.tar)
storage     a folder to write to: local, or in an object store
listing     the images of a run of work as a Parquet file, one row group per chunk
plan        what a folder of parts is made from; another model or other options never mix with it
job         what a worker must know
tables      scores and completed labels as Arrow tables
parts       write a part, and tell whether one is there and whole
scoring     the worker: one chunk to one part
totals      sums over parts, and the manifest
processes   local worker processes, which may be killed
worker      the program of such a process
ray_engine  the same on a Ray cluster
ranks       the same under torchrun
joined      one file made from the parts
engines     which of them does the work
session     predict and complete

features        the same for features behind train and calibrate: rows of one array of the feature cache
records         which rows a worker has written, and their checksum
feature_worker  the worker for them
kinds           which worker does a job
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sarb.bulk.features import features_by
    from sarb.bulk.session import complete, predict
    from sarb.bulk.totals import Done

__all__ = ["Done", "complete", "features_by", "predict"]

HOMES = {"Done": "totals", "features_by": "features"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'sarb.bulk' has no attribute '{name}'")
    return getattr(importlib.import_module(f"sarb.bulk.{HOMES.get(name, 'session')}"), name)
