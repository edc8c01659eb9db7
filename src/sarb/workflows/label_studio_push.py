"""``sarb data push label-studio``: a table of labels becomes a project with a task per image."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from sarb.data import Data, load
from sarb.errors import ConfigError, DataError, check_choice
from sarb.label_studio.config import Config, labelling_config, read_config
from sarb.label_studio.host import Host
from sarb.label_studio.tasks import FILE_NAME, annotation, image_names, model_version, prediction, task_data
from sarb.labels import UNKNOWN
from sarb.progress import Progress
from sarb.runs.lookup import find_model

#: tasks in one request
CHUNK = 100
#: the order in which Label Studio asks: the lowest score first
ORDER = "Uncertainty sampling"
IMAGES = ("upload", "local")


class Photo(NamedTuple):
    """An image of the table: its name there, its file, its known labels, and the model's prediction."""

    name: str
    file: Path
    known: dict[str, int]
    complete: bool
    prediction: dict[str, Any] | None = None


@dataclass
class Pushed:
    """What a push did; ``skipped``: (file name, reason) of images that could not be read."""

    project: int
    url: str
    tasks: int = 0
    predictions: int = 0
    known: int = 0
    complete: int = 0
    there: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def __str__(self) -> str:
        parts = [f"{self.tasks:,} tasks", f"{self.predictions:,} with a prediction"]
        parts.append(f"{self.known:,} known labels shown")
        parts += (
            [f"{self.complete:,} done already, since all their labels are known"] if self.complete else []
        )
        parts += [f"{self.there:,} images were in the project already"] if self.there else []
        return f"{self.url}: {', '.join(parts)}"


def push_session(
    source: str,
    host: Host,
    *,
    options: Mapping[str, Any] | None = None,
    project: int | None = None,
    title: str | None = None,
    run: Path | None = None,
    split: str = "train",
    limit: int | None = None,
    images: str = "upload",
    document_root: Path | None = None,
    prefill: bool = False,
    min_confidence: float = 0.0,
    progress: bool = False,
) -> Pushed:
    """Make a project, or add to one: a task per image, with the known labels and a model's predictions.

    Images that the project has already are left alone, so a push can be repeated.

    Args:
        source: the labels.
        host: the server.
        options: of the source.
        project: number of an existing project; its configuration must ask about every category.
        title: of a new project.
        run: run or model folder that makes the predictions.
        split: images to push, ``all`` or one split. The default keeps the test images out of the questions.
        limit: most images; with a model the least certain ones, else the first ones.
        images: ``upload`` copies them to the server; ``local`` lets the server read them where they are.
        document_root: for ``local``, the server's LOCAL_FILES_DOCUMENT_ROOT.
        prefill: let the server fill in the predictions, so that what nobody changes counts as answered.
        min_confidence: leave answers out of the predictions that are less probable.
        progress: draw a progress bar.
    """
    check_choice("way to hand over images", images, IMAGES)
    data = load(source, **(options or {}))
    photos = _photos(data, split)
    place = _LocalFiles(photos, document_root) if images == "local" else _Upload()
    with host.errors():
        client = host.client()
        config, pushed, names = _open_project(client, host, data, project, title, prefill)
        fresh = [photo for photo in photos if photo.name not in names]
        pushed.there = len(photos) - len(fresh)
        if run is not None:
            fresh = _predicted(run, fresh, config, min_confidence, pushed.skipped, progress)
        chosen = fresh if limit is None else _least_certain(fresh)[:limit]
        find = place.open(client, host, pushed.project)
        with Progress(progress).bar("pushing", len(chosen)) as advance:
            for start in range(0, len(chosen), CHUNK):
                chunk = chosen[start : start + CHUNK]
                tasks = [_task(photo, find(photo.file), config, pushed) for photo in chunk]
                client.projects.import_tasks(id=pushed.project, request=tasks)
                advance(len(tasks))
    return pushed


def _photos(data: Data, split: str) -> list[Photo]:
    check_choice("split", split, ["all", *data.splits])
    photos = []
    names = image_names(data)
    for chosen in data.splits if split == "all" else [split]:
        part = data.splits[chosen]
        for name, file, values in zip(names[chosen], part.paths, part.labels.values, strict=True):
            known = {
                category: label
                for category, label in zip(part.categories, values.tolist(), strict=True)
                if label != UNKNOWN
            }
            photos.append(Photo(name, file, known, len(known) == len(part.categories)))
    return photos


def _open_project(
    client: Any, host: Host, data: Data, project: int | None, title: str | None, prefill: bool
) -> tuple[Config, Pushed, set[str]]:
    """Make the project, or check that it asks about all categories; return also the images it has already."""
    if project is None:
        made = client.projects.create(
            title=title or f"sarb: {data.name}",
            label_config=labelling_config(data.categories),
            sampling=ORDER,
            show_collab_predictions=prefill,
        )
        return read_config(made.label_config), Pushed(made.id, f"{host.url}/projects/{made.id}"), set()
    config = read_config(client.projects.get(id=project).label_config)
    asked = {question.category for question in config.questions}
    missing = [name for name in data.categories if name not in asked]
    if missing:
        raise DataError(
            f"project {project} at {host.url} has no yes/no question about {', '.join(missing[:5])}"
            f"{' …' * (len(missing) > 5)}; leave out --project to make a new one"
        )
    names = {str((task.data or {}).get(FILE_NAME)) for task in client.tasks.list(project=project)}
    return config, Pushed(project, f"{host.url}/projects/{project}"), names


def _predicted(
    run: Path,
    photos: Sequence[Photo],
    config: Config,
    min_confidence: float,
    skipped: list[tuple[str, str]],
    progress: bool,
) -> list[Photo]:
    """Return the photos that can be read, each with the model's prediction."""
    from sarb.inference.prediction import predict
    from sarb.model import load_model

    model = load_model(run)
    asked = [question for question in config.questions if question.category in model.categories]
    if not asked:
        raise ConfigError([f"{run}: its model knows none of the categories of these labels"])
    files = [str(photo.file) for photo in photos]
    scores = predict(model, files, skipped=skipped, progress=progress)
    calibration = model.calibration()
    thresholds = dict(
        zip(model.categories, calibration.ordered(model.categories).thresholds.tolist(), strict=True)
    )
    rows = dict(zip(scores.paths, calibration(scores).tolist(), strict=True))
    version = model_version(find_model(run).model)
    return [
        photo._replace(
            prediction=prediction(
                asked,
                dict(zip(model.categories, rows[file], strict=True)),
                thresholds,
                photo.known,
                version,
                min_confidence,
            )
        )
        for photo, file in zip(photos, files, strict=True)
        if file in rows
    ]


def _least_certain(photos: Sequence[Photo]) -> list[Photo]:
    """Return the photos with the lowest score first; without predictions in the same order."""
    return sorted(photos, key=lambda photo: photo.prediction["score"] if photo.prediction else 0.0)


def _task(photo: Photo, image: str, config: Config, pushed: Pushed) -> dict[str, Any]:
    """Return a task; one whose labels are all known is done, so they are its annotation."""
    task: dict[str, Any] = {"data": task_data(image, photo.name, photo.known)}
    pushed.tasks += 1
    pushed.known += len(photo.known)
    if photo.complete:
        task["annotations"] = [annotation(config.questions, photo.known)]
        pushed.complete += 1
    if photo.prediction is not None:
        task["predictions"] = [photo.prediction]
        pushed.predictions += 1
    return task


class _Upload:
    """Copies every image to the server."""

    def open(self, _: Any, host: Host, project: int) -> Callable[[Path], str]:
        return lambda file: host.upload(project, file)


class _LocalFiles:
    """Lets the server read the images from the folder they are in.

    Args:
        photos: the images.
        document_root: the server's LOCAL_FILES_DOCUMENT_ROOT; the server refuses this folder itself.
    """

    def __init__(self, photos: Sequence[Photo], document_root: Path | None) -> None:
        if document_root is None:
            raise ConfigError(
                ["--images local needs --document-root DIR, the server's LOCAL_FILES_DOCUMENT_ROOT"]
            )
        self.root = document_root.resolve()
        folders = {photo.file.resolve().parent for photo in photos}
        self.folder = Path(os.path.commonpath(folders)) if folders else self.root
        if not self.folder.is_relative_to(self.root):
            raise DataError(
                f"{self.folder}: the images must be in a folder below --document-root {self.root}"
            )
        if self.folder == self.root and folders:
            raise DataError(
                f"{self.root}: Label Studio does not serve images from its document root itself, only from a "
                "folder in it; set LOCAL_FILES_DOCUMENT_ROOT and --document-root to the parent folder"
            )

    def open(self, client: Any, _: Host, project: int) -> Callable[[Path], str]:
        """Allow the server to show this folder in the project, and return what finds a file."""
        allowed = [storage.path for storage in client.import_storage.local.list(project=project)]
        if str(self.folder) not in allowed:
            client.import_storage.local.create(
                project=project, path=str(self.folder), title="sarb", use_blob_urls=True
            )
        return lambda file: f"/data/local-files/?d={quote(str(file.resolve().relative_to(self.root)))}"
