"""Routes of *Try*: photos in, labels with probabilities and heat maps out."""

from __future__ import annotations

import base64
from typing import BinaryIO

import numpy as np
from fastapi import APIRouter, HTTPException, UploadFile
from pydantic import BaseModel

from sarb.data.decoding import Header
from sarb.data.images import decode
from sarb.errors import ImageError
from sarb.serve.heat import encode
from sarb.serve.pictures import to_jpeg
from sarb.serve.recogniser import SIDE, Recogniser

#: photos in one request
MAX_PHOTOS = 16


class Label(BaseModel):
    """One label; ``present`` if at or above its threshold; ``heat``: H · W bytes, row by row, in base64."""

    label: str
    probability: float
    threshold: float
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
    async def predict(photos: list[UploadFile]) -> list[Photo]:
        """Label photos. ``preview`` is a JPEG in base64, ``grid`` the (height, width) of the heat maps."""
        if len(photos) > MAX_PHOTOS:
            raise HTTPException(413, f"at most {MAX_PHOTOS} photos per request, got {len(photos)}")
        return [await _label(recogniser, photo) for photo in photos]

    return routes


async def _label(recogniser: Recogniser, photo: UploadFile) -> Photo:
    # a name may be anything in a form that is not UTF-8
    name = (photo.filename or "photo").encode("utf-8", "replace").decode("utf-8")
    file: BinaryIO = photo.file
    try:
        return await recogniser.decoders.run(file, lambda header: _look(recogniser, name, file, header))
    except ImageError as error:
        # the decoder does not know the file name
        return Photo(name=name, error=f"{name}: {str(error).partition(': ')[2]}")


def _look(recogniser: Recogniser, name: str, file: BinaryIO, header: Header) -> Photo:
    picture = recogniser.decode(file)
    seen = recogniser.look(picture)
    size = (header.width, header.height)
    upright = size if (picture.width > picture.height) == (header.width > header.height) else size[::-1]
    if picture.size != upright:  # it was made small for the model; the preview may be larger
        del picture
        picture = decode(file, SIDE)
    thresholds = recogniser.thresholds()
    labels = [
        Label(
            label=recogniser.categories[column],
            probability=float(seen.probabilities[column]),
            threshold=float(thresholds[column]),
            present=bool(seen.probabilities[column] >= thresholds[column]),
            heat=encode(seen.heat[column]),
        )
        for column in np.argsort(-seen.probabilities, kind="stable")
    ]
    height, width = seen.heat.shape[1:]
    return Photo(
        name=name,
        width=upright[0],
        height=upright[1],
        grid=(height, width),
        labels=labels,
        preview=base64.b64encode(to_jpeg(picture)).decode("ascii"),
    )
