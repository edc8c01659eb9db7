"""``sarb.bulk.predict`` and ``sarb.bulk.complete``: everything behind ``sarb predict`` and ``complete`` with parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sarb.bulk import ranks
from sarb.bulk.engines import again, check_engine, do
from sarb.bulk.items import Item, is_memory, is_remote
from sarb.bulk.job import COMPLETE, PREDICT, Job
from sarb.bulk.joined import check_new, join, one_file, parts_for
from sarb.bulk.parts import Part
from sarb.bulk.plan import Plan, model_checksum, read_plan, settle
from sarb.bulk.shards import SHARD
from sarb.bulk.sources import find_items
from sarb.bulk.storage import Storage
from sarb.bulk.tables import check_wide
from sarb.bulk.totals import FILE, Done, Totals, manifest, no_images
from sarb.data import Dataset
from sarb.data.readers.parquet import need_pyarrow
from sarb.errors import ConfigError, SarbError, check_share, named, setting
from sarb.labelling.calibration import Calibration
from sarb.labelling.completion import Filled
from sarb.progress import Progress
from sarb.runs.lookup import find_model
from sarb.workflows.labelled import run_data

PART_SIZE = 1024


@dataclass(frozen=True)
class Work:
    """How the chunks are done.

    Attributes:
        out: folder or address of the parts; or a file, ``.csv`` or ``.parquet``, which is made from them.
        engine: ``local`` or ``ray``.
        address: of a Ray cluster; None starts one on this computer.
        workers: processes or actors; 0 is one per processor.
        part_size: images per part.
        batch_size: images per step.
        threads: of torch in each worker.
        progress: show progress on stderr.
        watch: called with each part.
        overwrite: replace a file that is there.
    """

    out: str | Path
    engine: str = "local"
    address: str | None = None
    workers: int = 0
    part_size: int = PART_SIZE
    batch_size: int = 32
    threads: int = 1
    progress: bool | Progress = False
    watch: Callable[[Part], None] | None = None
    overwrite: bool = False

    def check(self, sources: Iterable[str]) -> Work:
        """Raise for what cannot be; return how it is done, which for ``memory://`` is in this process."""
        least = {"part_size": "image per part", "batch_size": "image per step", "threads": "thread"}
        problems = [
            f"{setting(name, getattr(self, name))}: expected at least one {what}"
            for name, what in least.items()
            if getattr(self, name) < 1
        ]
        if self.workers < 0:
            problems.append(f"{setting('workers', self.workers)}: expected 0 (one per core) or more")
        if problems:
            raise ConfigError(problems)
        check_engine(self.engine, self.address, self.workers)
        if not any(map(is_memory, (str(self.out), *sources))):
            return self
        if self.engine != "local" or ranks.world() > 1:
            raise ConfigError(["memory:// is known to this process only; expected the engine local"])
        return replace(self, workers=1)


def predict(
    run: str | Path,
    images: Sequence[str | Path] | str | Path,
    out: str | Path,
    *,
    top_k: int | None = None,
    threshold: float | None = None,
    **work: Any,
) -> Done:
    """Score very many images and write Parquet parts; the same call again goes on where it stopped.

    Args:
        run: run or model folder, or hub id.
        images: folders, files, lists (CSV, TSV, Parquet), WebDataset shards (``.tar``), or addresses of them
            (``s3://bucket/photos``).
        out: folder or address, where every worker must be able to write; or a file, ``.csv`` or ``.parquet``.
        top_k: only so many labels per image, in a long table.
        threshold: only labels at least this probable, in a long table.
        work: the other fields of :class:`Work`: engine, address, workers, part_size, batch_size, threads, progress.
    """
    if threshold is not None:
        check_share(named("threshold"), threshold)
    sources = [str(source) for source in ([images] if isinstance(images, str | Path) else images)]
    how = Work(out, **work).check(sources)
    options = {"top_k": top_k, "threshold": threshold}
    if top_k is None and threshold is None:
        check_wide(find_model(run).model.read_config()["categories"])
    return _session(PREDICT, run, options, lambda: find_items(sources), how)


def complete(
    run: str | Path,
    source: str | Path | None,
    out: str | Path,
    *,
    data_options: Mapping[str, str] | None = None,
    split: str | None = None,
    min_confidence: float | None = None,
    min_precision: float | None = None,
    **work: Any,
) -> Done:
    """Fill in unknown labels of very many images and write Parquet parts, as :func:`predict` does.

    Args:
        run: run folder.
        source: data source with labels; None is the run's own. An address or a shard has images without labels.
        out: as of :func:`predict`.
        data_options: options of the data source.
        split: train, valid, test or all (the default).
        min_confidence: as of :func:`sarb.complete`.
        min_precision: the same, with ``each``; it needs a calibrated run.
        work: as of :func:`predict`.
    """
    source = None if source is None else str(source)
    how = Work(out, **work).check([source or ""])
    model = find_model(run).model
    calibration = model.calibration()
    if min_precision is not None and (calibration is None or not calibration.counts.sum()):
        raise ConfigError(
            [
                f"{named('min_precision')} with parts needs a calibrated run, because a threshold may not depend on "
                f"the part; run 'sarb calibrate {run}' first"
            ]
        )
    categories = tuple(model.read_config()["categories"])
    options: dict[str, Any] = {"min_confidence": min_confidence, "min_precision": min_precision}
    if min_precision is not None:
        options["each"] = True  # the mean probability of a part is not that of another
    asked = no_images(calibration or Calibration.identity(categories), options)
    if source is not None and (is_remote(source) or source.lower().endswith(SHARD)):
        if data_options or split:
            raise ConfigError([f"{source}: images without labels have no split and no options"])
        return _session(COMPLETE, run, options, lambda: find_items([source]), how, asked)
    data = run_data(Path(run), source, data_options)
    if split not in (None, "all", *data.splits):
        raise ConfigError([f"unknown split '{split}'. Available: all, {', '.join(data.splits)}"])
    chosen = list(data.splits) if split in (None, "all") else [str(split)]

    def labelled() -> Iterator[Item]:
        for name in chosen:
            yield from _labelled(data.splits[name], categories)

    return _session(COMPLETE, run, options, labelled, how, asked)


def _labelled(dataset: Dataset, categories: Sequence[str]) -> Iterator[Item]:
    """Images with their known labels, in the order of the model's categories."""
    if set(dataset.categories) != set(categories):
        odd = sorted(set(dataset.categories) ^ set(categories))
        raise SarbError(
            f"the data and the model have different categories: {len(odd):,} are in one of them only ('{odd[0]}' …)"
        )
    order = [dataset.categories.index(name) for name in categories]
    root = dataset.root.absolute()
    for row, name in enumerate(dataset.labels.paths):
        yield Item(name, str(root / name), given=dataset.labels.values[row, order].tobytes())


def _session(
    kind: str,
    run: str | Path,
    options: dict[str, Any],
    items: Callable[[], Iterable[Item]],
    work: Work,
    asked: Filled | None = None,
) -> Done:
    need_pyarrow(Path(str(work.out)))
    file = one_file(work.out)
    if file is None:
        return _folder(kind, run, options, items, work, asked)
    check_new(file, kind, work.overwrite)
    done = _folder(kind, run, options, items, replace(work, out=parts_for(file)), asked)
    if ranks.rank() == 0:
        join(file, done.parts)
    return replace(done, out=str(file))


def _folder(
    kind: str,
    run: str | Path,
    options: dict[str, Any],
    items: Callable[[], Iterable[Item]],
    work: Work,
    asked: Filled | None,
) -> Done:
    """Make the parts and the manifest."""
    storage = Storage(str(work.out) if is_remote(str(work.out)) else str(Path(work.out).absolute()))
    model = model_checksum(find_model(run).model)
    settings = {**options, "batch_size": work.batch_size, "threads": work.threads}

    def made(listing: str, images: int) -> Plan:
        return Plan(kind, model, settings, listing, images, work.part_size)

    plan = settle(storage, made, items, work.part_size) if ranks.rank() == 0 else None
    ranks.wait()
    plan = plan or read_plan(storage)
    assert plan is not None, "the first rank has written it"
    place = str(Path(run).absolute()) if Path(run).exists() else str(run)
    job = Job(kind, place, storage.folder, plan.identity, model, options, work.batch_size, work.threads)
    totals = _work(job, plan, work)
    ranks.wait()
    if ranks.world() > 1 and ranks.rank() == 0:
        for part in again(job, (number for number in range(plan.parts) if number not in totals.parts)):
            totals.add(_whole(part))
    done = totals.done(storage.folder, asked)
    if ranks.rank() == 0:
        storage.write(FILE, manifest(plan, totals, done).encode())
    return done


def _work(job: Job, plan: Plan, work: Work) -> Totals:
    """Do all chunks, or this rank's share, and add them up."""
    totals = Totals()
    talk = Progress.of(work.progress)
    with talk.bar("predicting" if job.kind == PREDICT else "completing", plan.images) as advance:
        for part in do(job, plan.parts, work.engine, work.address, work.workers):
            totals.add(_whole(part))
            advance(part.images)
            if work.watch is not None:
                work.watch(part)
    return totals


def _whole(part: Part) -> Part:
    if part.error:
        raise SarbError(part.error)
    return part
