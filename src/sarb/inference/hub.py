"""The model folder in the Hugging Face layout: save, load from a folder or the hub, push to the hub."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sarb.errors import ConfigError, SarbError
from sarb.files import near_path, read_json, write_json

if TYPE_CHECKING:
    from sarb.model import Model

#: the files of a model folder; nothing else is downloaded
FILES = ("model.safetensors", "config.json", "README.md", "thresholds.json")
#: owner/name, with hf: in front to leave no doubt and @revision behind
HUB_ID = re.compile(
    r"^(?P<sure>hf:)?(?P<id>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(@(?P<revision>[\w./-]+))?$"
)
#: the usual name of a folder of ours: a slip of the pen in it is not looked up on the internet
OURS = "runs"


def save_pretrained(
    model: Model, folder: str | Path, *, license: str | None = None, card: str | None = None
) -> Path:
    """Write a folder that is enough on its own: ``model.safetensors``, ``config.json``, ``README.md``.

    Args:
        model: the model.
        folder: where; an older model in it is replaced, as a whole.
        license: identifier for the model card, such as ``"apache-2.0"``.
        card: text of ``README.md``; None takes the one the model came with, or a short one.
    """
    from sarb.report.card import short_card, with_license

    text = card or _own_card(model) or short_card(model)
    thresholds = thresholds_file(model)
    kept = (
        None if thresholds is None else read_json(thresholds)
    )  # saving over the model's own folder removes it
    saved = model.save(folder, with_license(text, license) if license else text)
    if kept is not None:
        write_json(saved / "thresholds.json", kept)
    return saved


def _own_card(model: Model) -> str | None:
    file = None if model.folder is None else model.folder / "README.md"
    return file.read_text(encoding="utf-8") if file is not None and file.is_file() else None


def thresholds_file(model: Model) -> Path | None:
    """``thresholds.json`` beside the model, or in the run that the model folder belongs to."""
    if model.folder is None:
        return None
    places = [model.folder, *([model.folder.parent] if model.folder.name in ("model", "best") else [])]
    return next(
        (place / "thresholds.json" for place in places if (place / "thresholds.json").is_file()), None
    )


def push_to_hub(
    model: Model,
    repo: str,
    *,
    private: bool = False,
    token: str | None = None,
    license: str | None = None,
    message: str = "Upload model with sarb",
) -> str:
    """Upload a model to ``owner/name`` on the Hugging Face hub, making the repository if needed; return its
    address.

    Args:
        model: the model.
        repo: ``owner/name``.
        private: only you can see a repository that is made now.
        token: access token; None uses the login of ``hf auth login``.
        license: as in :func:`save_pretrained`.
        message: of the commit.
    """
    found = HUB_ID.match(repo)
    if found is None or found["revision"]:
        raise ConfigError([f"push_to_hub: expected owner/name, got '{repo}'"])
    hub = _library()
    api = hub.HfApi(token=token)
    home = model.folder
    with tempfile.TemporaryDirectory() as place, _one_line(f"push to {repo}"):
        folder = save_pretrained(model, Path(place) / "model", license=license)
        model.folder = home
        address = api.create_repo(found["id"], repo_type="model", private=private, exist_ok=True)
        api.upload_folder(repo_id=found["id"], folder_path=folder, repo_type="model", commit_message=message)
    return str(address)


def hub_id(name: str | Path) -> bool:
    """Whether a name that is no folder here may be ``owner/name`` on the hub: not below a folder that
    exists.
    """
    found = HUB_ID.match(str(name))
    if found is None:
        return False
    owner = found["id"].split("/")[0]
    return bool(found["sure"]) or not (owner == OURS or Path(owner).exists())


def download(name: str | Path) -> Path:
    """Fetch ``owner/name[@revision]`` from the hub, or find it in the hub's cache; return the folder."""
    found = HUB_ID.match(str(name))
    assert found is not None
    with _one_line(f"{name}: no such run or model folder, and not found on the Hugging Face hub"):
        folder = _library().snapshot_download(
            found["id"], revision=found["revision"], allow_patterns=list(FILES), repo_type="model"
        )
    return Path(folder)


def missing(path: Path) -> SarbError:
    """The error for a path that is no folder, with the near match if there is one."""
    near = near_path(path)
    hint = f". Did you mean '{near}'?" if near is not None and near.is_dir() else ""
    return SarbError(f"{path}: no such run or model folder{hint}")


@contextmanager
def _one_line(what: str) -> Iterator[None]:
    """Turn the library's errors, which are pages long and of a dozen classes, into one of ours."""
    try:
        yield
    except SarbError:
        raise
    except Exception as error:
        reason = next(
            (line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__
        )
        raise SarbError(f"{what} ({reason[:200]})") from error


def _library() -> Any:
    try:
        import huggingface_hub
    except ImportError as error:
        raise SarbError("the Hugging Face hub needs its library: pip install 'sarb[hub]'") from error
    return huggingface_hub
