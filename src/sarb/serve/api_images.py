"""Routes of the photos under review, and of the heat maps that show where the network looked."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Response
from pydantic import BaseModel

from sarb.serve.heat import encode
from sarb.serve.pictures import Pictures
from sarb.serve.recogniser import Seen


class Heat(BaseModel):
    """A heat map: ``grid`` is (height, width), ``heat`` its bytes, row by row, in base64."""

    grid: tuple[int, int]
    heat: str


def image_routes(pictures: Pictures) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(tags=["review"])

    @routes.get("/api/images/{image}", response_class=Response)
    def picture(image: int) -> Response:
        """A photo under review, by number, as JPEG."""
        jpeg, _ = _numbered(pictures, image)
        return Response(jpeg, media_type="image/jpeg")

    @routes.get("/api/images/{image}/heat/{category}")
    def heat(image: int, category: int) -> Heat:
        """Where the network looked for a category in a photo, both by number."""
        _, seen = _numbered(pictures, image)
        count, height, width = seen.heat.shape
        if not 0 <= category < count:
            raise HTTPException(404, f"no category {category}: they are numbered 0 to {count - 1}")
        return Heat(grid=(height, width), heat=encode(seen.heat[category]))

    return routes


def _numbered(pictures: Pictures, image: int) -> tuple[bytes, Seen]:
    if not 0 <= image < len(pictures):
        raise HTTPException(404, f"no image {image}: they are numbered 0 to {len(pictures) - 1}")
    return pictures[image]
