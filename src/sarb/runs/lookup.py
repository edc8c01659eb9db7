"""Where a name leads: to a run folder, a model folder, or a model of the Hugging Face hub."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sarb.errors import SarbError
from sarb.files import near_path
from sarb.labelling.calibration import Calibration
from sarb.runs.folder import BEST, CONFIG, LAST, MODEL_FILES, WEIGHTS, RunFolder
from sarb.runs.swap import recover

#: owner/name, with an optional hf: in front to make it unambiguous and @revision behind
HUB_ID = re.compile(
    r"^(?P<sure>hf:)?(?P<id>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(@(?P<revision>[\w./-]+))?$"
)
#: the usual parent of our run folders: a typo below it is not looked up on the internet
OURS = "runs"


def find_run(name: str | Path) -> RunFolder:
    """The folder behind a path or a hub id; an error with the near match if there is none."""
    path = Path(name)
    for folder in (path, path / LAST, path / BEST):
        recover(folder)
    if path.exists():
        return RunFolder(path)
    if hub_id(name):
        return RunFolder(download(name))
    raise missing(path)


def find_model(name: str | Path) -> RunFolder:
    """The same, for a folder that must hold a model."""
    run = find_run(name)
    if not run.model.exists():
        expected = f"{LAST}/{WEIGHTS} or {WEIGHTS} with {CONFIG}"
        raise SarbError(f"{name}: not a run or model folder (expected {expected})")
    return run


def load_calibration(folder: str | Path) -> Calibration | None:
    """The calibration of a run folder, a model folder or a hub id; None if it has none.

    It belongs to the weights it was fitted to: the best epoch of a run has its own, or none.
    """
    return find_run(folder).calibration()


def hub_id(name: str | Path) -> bool:
    """Whether a name that is not a folder here may be ``owner/name`` on the hub: not below an existing folder."""
    match = HUB_ID.match(str(name))
    if match is None:
        return False
    owner = match["id"].split("/")[0]
    return bool(match["sure"]) or not (owner == OURS or Path(owner).exists())


def download(name: str | Path) -> Path:
    """Fetch ``owner/name[@revision]`` from the hub, or find it in the hub's cache; return the folder."""
    match = HUB_ID.match(str(name))
    assert match is not None
    with hub_errors(f"{name}: no such run or model folder, and not found on the Hugging Face hub"):
        folder = hub_library().snapshot_download(
            match["id"], revision=match["revision"], allow_patterns=list(MODEL_FILES), repo_type="model"
        )
    return Path(folder)


def missing(path: Path) -> SarbError:
    """The error for a path that is not a folder, with the near match if there is one."""
    near = near_path(path)
    hint = f". Did you mean '{near}'?" if near is not None and near.is_dir() else ""
    return SarbError(f"{path}: no such run or model folder{hint}")


@contextmanager
def hub_errors(action: str) -> Iterator[None]:
    """Turn the library's errors, which are pages long and of a dozen classes, into one line of ours."""
    try:
        yield
    except SarbError:
        raise
    except Exception as error:
        reason = next(
            (line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__
        )
        raise SarbError(f"{action} ({reason[:200]})") from error


def hub_library() -> Any:
    """``huggingface_hub``, an optional package."""
    try:
        import huggingface_hub
        import huggingface_hub.constants  # these are no attributes before they have been imported
        import huggingface_hub.errors
        import huggingface_hub.utils
    except ImportError as error:
        raise SarbError("the Hugging Face hub needs its library: pip install 'sarb[hub]'") from error
    return huggingface_hub
