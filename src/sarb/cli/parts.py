"""What ``predict`` and ``complete`` share when ``--out`` is a folder of parts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sarb.bulk import ranks
from sarb.cli.common import SKIPPED, echo, file_or_stdout, folder_to_write
from sarb.errors import ConfigError

if TYPE_CHECKING:
    from sarb.bulk import Done

Engine = Annotated[
    str | None,
    typer.Option(
        help="local or ray: many workers; --out is a folder for Parquet parts, or a file .csv or .parquet.",
        show_default="local if --out is a folder",
        metavar="NAME",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        help="Ray cluster to use, e.g. auto or ray://HOST:10001.",
        show_default="a new one on this computer",
        metavar="ADDR",
    ),
]
FeatureEngine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="local or ray: many workers compute the features that are not in the cache yet.",
        show_default="this process computes them",
        metavar="NAME",
    ),
]
FeatureWorkers = Annotated[
    int, typer.Option("--workers", help="With --engine: workers; 0 is one per core.", min=0)
]
PartSize = Annotated[int, typer.Option(help="With parts: images per part.", min=1, metavar="N")]


def is_address(place: str) -> bool:
    """Whether a place is in an object store."""
    return "://" in place


def file_or_parts(out: str | None) -> str | None:
    """Refuse what can be written neither as a file nor as a folder, before any work is done."""
    if out is None or is_address(out):
        return out
    if Path(out).is_dir() or out.endswith(("/", os.sep)):
        return None if folder_to_write(Path(out)) is None else out
    return str(file_or_stdout(Path(out)))


def is_parquet(out: str | None) -> bool:
    """Whether the result is to be a Parquet file, which only parts make."""
    return out is not None and out.lower().endswith(".parquet")


def wants_parts(out: str | None, engine: str | None) -> bool:
    """Whether many workers do it: --engine says so, or an address, or a folder as --out."""
    folder = out is not None and (is_address(out) or Path(out).is_dir() or out.endswith(("/", os.sep)))
    if engine is not None and not folder:
        from sarb.bulk.joined import one_file

        if out is None or out == "-" or (Path(out).exists() and one_file(out) is None):
            raise ConfigError(
                [
                    f"--engine {engine} writes parts; expected --out DIR, a folder or an address, "
                    "or a file .csv or .parquet"
                ]
            )
    return folder or engine is not None


@contextmanager
def keeps_parts() -> Iterator[None]:
    """Say after Ctrl-C or SIGTERM that the work can go on."""
    try:
        yield
    except Exception:
        raise
    except BaseException:
        echo("sarb: finished parts are saved; the same command goes on", err=True)
        raise


def only_with_parts(**given: object) -> None:
    """Refuse options that only parts have."""
    for name, value in given.items():
        if value is not None:
            raise ConfigError(
                [f"--{name.replace('_', '-')}: is for parts; add --engine local or --engine ray"]
            )


def features_by(engine: str | None, address: str | None, workers: int | None) -> AbstractContextManager[None]:
    """While it is open, features that are missing are computed as --engine says."""
    if engine is None:
        if address is not None:
            raise ConfigError(["--address: is for --engine ray"])
        return nullcontext()
    from sarb.bulk.features import features_by as by

    return by(engine, address, workers or 0)


def not_with_parts(**given: object) -> None:
    """Refuse options that parts do not have."""
    for name, value in given.items():
        if value:
            raise ConfigError(
                [
                    f"--{name.replace('_', '-')}: cannot be used with parts; see docs/bulk.md, or name a file as --out"
                ]
            )


def tell(done: Done, as_json: bool) -> None:
    """Say what is in the folder, and end with the code of a command that had to leave out images."""
    from sarb.bulk.joined import one_file

    if ranks.rank():
        return
    there = done.parts - done.computed
    # under torchrun those of other ranks are there, too
    before = f" ({there:,} were there)" if there and ranks.world() == 1 else ""
    if as_json:
        echo(json.dumps(done.to_dict(), indent=2, ensure_ascii=False))
    else:
        echo(
            f"{done.out}: {done.images:,} images, {done.rows:,} rows in {done.parts:,} parts{before}",
            err=True,
        )
        if done.filled:
            echo(_filled(done), err=True)
        if done.caution:
            echo(f"{done.caution} (all: --json)", err=True)
    for reason in done.reasons:
        echo(f"sarb: skipped: {reason}", err=True)
    if done.unreadable:
        where = "_errors-*.parquet" if one_file(done.out) is None else f"{done.out}.errors.csv"
        echo(f"sarb: {done.unreadable:,} images could not be read; {where} lists them", err=True)
        if ranks.world() == 1:  # torchrun takes any code but 0 for a crash
            raise typer.Exit(SKIPPED)


def _filled(done: Done) -> str:
    """The counts of completed labels in one line."""
    found = done.filled
    parts = [f"{found['given']:,} labels given and kept"]
    for kind in ("present", "absent"):
        precision = found[f"expected_precision_{kind}"]
        expected = "" if precision is None else f" (expected precision {precision:.3f})"
        parts.append(f"{found[f'filled_{kind}']:,} filled as {kind}{expected}")
    return ", ".join([*parts, f"{found['left_unknown']:,} left unknown"])
