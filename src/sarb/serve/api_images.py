"""Routes of the photos under review, and of the heat maps that show where the network looked."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Response
from pydantic import BaseModel

from sarb.serve.heat import encode
from sarb.serve.pictures import Pictures


class Heat(BaseModel):
    """A heat map: ``grid`` is (height, width), ``heat`` its bytes, row by row, in base64."""

    grid: tuple[int, int]
    heat: str


def image_routes(pictures: Pictures) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(tags=["review"])

    @routes.get("/api/images/{image}", response_class=Response)
    async def picture(image: int) -> Response:
        """A photo under review, by number, as JPEG."""
        return Response(await pictures.photo(_existing(pictures, image)), media_type="image/jpeg")

    @routes.get("/api/images/{image}/small", response_class=Response)
    async def small(image: int) -> Response:
        """The same photo as a thumbnail."""
        return Response(await pictures.thumbnail(_existing(pictures, image)), media_type="image/jpeg")

    @routes.get("/api/images/{image}/heat/{category}")
    async def heat(image: int, category: int) -> Heat:
        """Where the network looked for a category in a photo, both by number."""
        seen = await pictures.seen(_existing(pictures, image))
        count, height, width = seen.heat.shape
        if not 0 <= category < count:
            raise HTTPException(404, f"no category {category}: they are numbered 0 to {count - 1}")
        return Heat(grid=(height, width), heat=encode(seen.heat[category]))

    return routes


def _existing(pictures: Pictures, image: int) -> int:
    if not 0 <= image < len(pictures):
        raise HTTPException(404, f"no image {image}: they are numbered 0 to {len(pictures) - 1}")
    return image
