"""Routes of *Review*: questions, answers, undo, and the pictures they are about."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field

from sarb.serve.desk import Desk
from sarb.serve.heat import encode
from sarb.serve.pictures import Pictures

Who = Annotated[str, Field(min_length=1, max_length=64, description="Your name, or that of your tab.")]
Count = Annotated[int, Field(ge=1, le=50, description="Questions to hand out.")]


class Ask(BaseModel):
    """Ask for questions, of one category if wanted."""

    who: Who
    category: str | None = None
    count: Count = 4


class Answer(Ask):
    """Answer a question: yes, no or skip."""

    question: str = Field(max_length=64)
    answer: str = Field(max_length=8)


class Undo(Ask):
    """Take back your last answer; with a question, only if it is the last, so that sending it twice does no
    harm.
    """

    question: str | None = Field(default=None, max_length=64)


class Asked(BaseModel):
    """One unknown label; ``image`` is the number for ``/api/images``."""

    id: str
    image: int
    file_name: str
    label: str
    category: int
    probability: float
    reason: str


class Progress(BaseModel):
    """Counts of the questions; ``undo`` is the one that you can take back. ``problem`` says why the CSV is
    not written.

    An answer is safe in the journal all the same.
    """

    questions: int
    open: int
    yes: int
    no: int
    skip: int
    undo: str | None
    out: str
    problem: str


class Reply(BaseModel):
    """The questions this person holds now, in order, and the progress; after an undo the question taken
    back.
    """

    next: list[Asked]
    progress: Progress
    undone: Asked | None = None


class Heat(BaseModel):
    """A heat map: ``grid`` is (height, width), ``heat`` the bytes row by row in base64."""

    grid: tuple[int, int]
    heat: str


def review_routes(desk: Desk, pictures: Pictures) -> APIRouter:
    """Make the routes."""
    routes = APIRouter(tags=["review"])

    def reply(ask: Ask, undone: Any = None) -> Reply:
        questions = desk.next(ask.who, ask.category, ask.count)
        progress = Progress(**desk.progress(ask.who, ask.category))
        given = None if undone is None else Asked(**asdict(undone))
        return Reply(
            next=[Asked(**asdict(question)) for question in questions], progress=progress, undone=given
        )

    @routes.get("/api/review")
    def categories() -> list[dict[str, Any]]:
        """Every category with its number of questions and how many are open."""
        return desk.open_by_category()

    @routes.post("/api/review/next")
    def following(ask: Ask) -> Reply:
        """Hand out questions; nobody else gets them for a while."""
        return reply(ask)

    @routes.post("/api/review/answer")
    def answer(given: Answer) -> Reply:
        """Save an answer; it is on the disk when this returns. The same answer twice is one answer."""
        desk.answer(given.who, given.question, given.answer)
        return reply(given)

    @routes.post("/api/review/undo")
    def undo(ask: Undo) -> Reply:
        """Take back your own last answer."""
        undone = desk.undo(ask.who, ask.question)
        return reply(ask, undone)

    @routes.post("/api/review/reopen")
    def reopen(ask: Ask) -> Reply:
        """Ask the skipped questions again."""
        desk.reopen(ask.who, ask.category)
        return reply(ask)

    @routes.get("/api/review/file")
    def file() -> FileResponse:
        """The CSV with all answers so far."""
        desk.saver.save()
        if desk.saver.problem:
            raise HTTPException(500, desk.saver.problem)
        return FileResponse(desk.out, filename=desk.out.name, media_type="text/csv")

    @routes.get("/api/images/{image}", response_class=Response)
    def picture(image: int) -> Response:
        """A picture of the labels by its number, as JPEG."""
        return Response(_chosen(pictures, image)[0], media_type="image/jpeg")

    @routes.get("/api/images/{image}/heat/{category}")
    def heat(image: int, category: int) -> Heat:
        """Where the network looked for a category (by number) in a picture (by number)."""
        maps = _chosen(pictures, image)[1].heat
        if not 0 <= category < len(maps):
            raise HTTPException(404, f"there is no category {category}; there are {len(maps)}, from 0")
        return Heat(grid=(maps.shape[1], maps.shape[2]), heat=encode(maps[category]))

    return routes


def _chosen(pictures: Pictures, row: int) -> Any:
    if not 0 <= row < len(pictures):
        raise HTTPException(404, f"there is no image {row}; there are {len(pictures)}, from 0")
    return pictures[row]
