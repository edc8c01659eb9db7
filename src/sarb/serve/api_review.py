"""Routes of *Review*: questions, answers, undo."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field

from sarb.serve.desk import Desk
from sarb.serve.questions import Question

Who = Annotated[
    str, Field(min_length=1, max_length=64, description="Your name, or an id of your browser tab.")
]
Count = Annotated[int, Field(ge=1, le=50, description="How many questions to hand out.")]


class Ask(BaseModel):
    """Ask for questions, from one category or from all."""

    who: Who
    category: str | None = None
    count: Count = 4


class Answer(Ask):
    """Answer a question with yes, no or skip."""

    question: str = Field(max_length=64)
    answer: str = Field(max_length=8)


class Undo(Ask):
    """Take back your last answer; with ``question``, only if that was the last, so a resend does no harm."""

    question: str | None = Field(default=None, max_length=64)


class Progress(BaseModel):
    """How many questions there are, and how they were answered.

    ``undo`` is the question that you can take back. ``problem`` says why the CSV could not be written; the
    answers are safe in the journal even then.
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
    """The questions you hold now, in order, and the progress; after an undo, the question taken back."""

    next: list[Question]
    progress: Progress
    undone: Question | None = None


def review_routes(desk: Desk) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(tags=["review"])

    @routes.get("/api/review")
    def categories() -> list[dict[str, Any]]:
        """Every category with its number of questions, and how many are open."""
        return desk.open_by_category()

    @routes.post("/api/review/next")
    def following(ask: Ask) -> Reply:
        """Hand out questions; nobody else gets them while you are active."""
        return _reply(desk, ask)

    @routes.post("/api/review/answer")
    def answer(given: Answer) -> Reply:
        """Save an answer; it is on disk when this returns. Sending it again changes nothing."""
        desk.answer(given.who, given.question, given.answer)
        return _reply(desk, given)

    @routes.post("/api/review/undo")
    def undo(ask: Undo) -> Reply:
        """Take back your own last answer."""
        undone = desk.undo(ask.who, ask.question)
        return _reply(desk, ask, undone)

    @routes.post("/api/review/reopen")
    def reopen(ask: Ask) -> Reply:
        """Ask the skipped questions again."""
        desk.reopen(ask.who, ask.category)
        return _reply(desk, ask)

    @routes.get("/api/review/file")
    def file() -> FileResponse:
        """The CSV with all answers so far."""
        desk.saver.save()
        if desk.saver.problem:
            raise HTTPException(500, desk.saver.problem)
        return FileResponse(desk.out, filename=desk.out.name, media_type="text/csv")

    return routes


def _reply(desk: Desk, ask: Ask, undone: Question | None = None) -> Reply:
    questions = desk.next(ask.who, ask.category, ask.count)
    progress = Progress(**desk.progress(ask.who, ask.category))
    return Reply(next=questions, progress=progress, undone=undone)
