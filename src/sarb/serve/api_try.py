"""Routes of *Try*: photos in, labels with probabilities and heat maps out."""

from __future__ import annotations

import base64

import numpy as np
from fastapi import APIRouter, HTTPException, UploadFile
from pydantic import BaseModel

from sarb.data.images import decode
from sarb.errors import ImageError
from sarb.serve.heat import encode
from sarb.serve.pictures import to_jpeg
from sarb.serve.recogniser import Recogniser

#: photos in one request
MAX_PHOTOS = 16


class Label(BaseModel):
    """One label; ``present`` if at or above its threshold; ``heat``: H · W bytes, row by row, in base64."""

    label: str
    probability: float
    present: bool
    heat: str


class Photo(BaseModel):
    """What the model says about one photo, most probable label first, or why it cannot be read."""

    name: str
    error: str | None = None
    width: int = 0
    height: int = 0
    grid: tuple[int, int] = (0, 0)
    preview: str = ""
    labels: list[Label] = []


def try_routes(recogniser: Recogniser) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(tags=["try"])

    @routes.post("/api/predict")
    def predict(photos: list[UploadFile]) -> list[Photo]:
        """Label photos. ``preview`` is a JPEG in base64, ``grid`` the (height, width) of the heat maps."""
        if len(photos) > MAX_PHOTOS:
            raise HTTPException(413, f"at most {MAX_PHOTOS} photos per request, got {len(photos)}")
        return [_label(recogniser, photo) for photo in photos]

    return routes


def _label(recogniser: Recogniser, photo: UploadFile) -> Photo:
    name = photo.filename or "photo"
    try:
        picture = decode(photo.file.read())
    except ImageError as error:
        # the decoder does not know the file name
        return Photo(name=name, error=f"{name}: {str(error).partition(': ')[2]}")
    seen = recogniser.look(picture)
    present = seen.probabilities >= recogniser.thresholds()
    labels = [
        Label(
            label=recogniser.categories[column],
            probability=float(seen.probabilities[column]),
            present=bool(present[column]),
            heat=encode(seen.heat[column]),
        )
        for column in np.argsort(-seen.probabilities, kind="stable")
    ]
    height, width = seen.heat.shape[1:]
    return Photo(
        name=name,
        width=picture.width,
        height=picture.height,
        grid=(height, width),
        labels=labels,
        preview=base64.b64encode(to_jpeg(picture)).decode("ascii"),
    )
