"""The model folder in the Hugging Face layout: save it, push it to the hub."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from sarb.errors import ConfigError
from sarb.report.card import short_card, with_license
from sarb.runs.folder import LAST, ModelFolder
from sarb.runs.lookup import HUB_ID, hub_errors, hub_library

if TYPE_CHECKING:
    from sarb.model import Model


def save_pretrained(
    model: Model, folder: str | Path, *, license: str | None = None, card: str | None = None
) -> Path:
    """Write a folder that works on its own: weights, configuration, model card and the calibration, if any.

    Args:
        model: the model.
        folder: where to write; an older model there is replaced as a whole.
        license: identifier for the model card, such as ``"apache-2.0"``.
        card: text of the model card; None takes the card the model came with, or a short one.
    """
    home = None if model.folder is None else ModelFolder(model.folder)
    text = card or (home and home.read_card()) or short_card(model)
    calibration = model.calibration()  # read now: saving over the model's own folder removes it
    saved = ModelFolder(model.save(folder, with_license(text, license) if license else text))
    if calibration.fitted and calibration.weights in ("", saved.checksum()):
        saved.write_calibration(calibration)
    elif calibration.fitted:
        warnings.warn(
            f"{saved.path}: saved without the calibration, because the weights have changed since it was fitted",
            stacklevel=2,
        )
    return saved.path


def push_to_hub(
    model: Model,
    repo: str,
    *,
    private: bool = False,
    token: str | None = None,
    license: str | None = None,
    message: str = "Upload model with sarb",
) -> str:
    """Upload a model to ``owner/name`` on the Hugging Face hub and return its address.

    Args:
        model: the model.
        repo: ``owner/name``; the repository is created if needed.
        private: make a new repository private.
        token: access token; None uses the login of ``hf auth login``.
        license: as in :func:`save_pretrained`.
        message: commit message.
    """
    match = HUB_ID.match(repo)
    if match is None or match["revision"]:
        raise ConfigError([f"push_to_hub: expected owner/name, got '{repo}'"])
    api = hub_library().HfApi(token=token)
    home = model.folder
    with tempfile.TemporaryDirectory() as scratch, hub_errors(f"push to {repo}"):
        folder = save_pretrained(model, Path(scratch) / LAST, license=license)
        model.folder = home
        address = api.create_repo(match["id"], repo_type="model", private=private, exist_ok=True)
        api.upload_folder(repo_id=match["id"], folder_path=folder, repo_type="model", commit_message=message)
    return str(address)
