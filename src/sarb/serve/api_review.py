"""Routes of *Review* and of the *Wall*: questions, answers, undo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field

from sarb.serve.desk import Desk
from sarb.serve.handout import USUAL
from sarb.serve.questions import Question
from sarb.serve.strict_json import StrictRoute

#: questions in one reply, and answers in one request
MOST = 50

Who = Annotated[
    str, Field(min_length=1, max_length=64, description="Your name, or an id of your browser tab.")
]
Count = Annotated[
    Annotated[int, Field(ge=1, le=MOST)] | None,
    Field(
        description=f"How many questions to hand out: {USUAL} by default, or as many as you asked for last."
    ),
]
Order = Annotated[
    Literal["likely", "doubtful"] | None,
    Field(description="For the wall: the most likely or the most doubtful questions of a category first."),
]
Assisted = Annotated[bool, Field(description="Whether you had seen the model's opinion.")]
Word = Annotated[str, Field(max_length=64)]


class Ask(BaseModel):
    """Ask for questions, from one category or from all."""

    who: Who
    category: str | None = None
    count: Count = None
    order: Order = None
    ahead: Annotated[int, Field(ge=0, le=MOST, description="How many photos to name ahead.")] = 0


class Answer(Ask):
    """Answer a question with yes, no or skip."""

    question: Word
    answer: Word
    assisted: Assisted = False


class Page(Ask):
    """Answer a page of the wall; ``page`` is any name that is new, ``answers`` maps questions to answers."""

    page: Annotated[str, Field(min_length=1, max_length=64)]
    answers: Annotated[dict[Word, Word], Field(min_length=1, max_length=MOST)]
    assisted: Assisted = False


class Undo(Ask):
    """Take back your last answer; with ``question``, only if that was the last, so a resend does no harm.

    If the last answer was part of a page, the whole page is taken back.
    """

    question: Word | None = None


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
    """The questions you hold now, in order, and the progress; after an undo, the questions taken back.

    ``ahead`` are the numbers of photos that probably come next, to load them early; nobody holds them.
    """

    next: list[Question]
    progress: Progress
    undone: list[Question] = []
    ahead: list[int] = []


def review_routes(desk: Desk) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(tags=["review"], route_class=StrictRoute)

    @routes.get("/api/review")
    def categories() -> list[dict[str, Any]]:
        """Every category with its number of questions, and how many are open."""
        return desk.open_by_category()

    @routes.post("/api/review/next")
    def following(ask: Ask, request: Request) -> Reply:
        """Hand out questions; nobody else gets them while you are active."""
        return _reply(desk, request, ask.model_copy(update={"count": ask.count or USUAL}))

    @routes.post("/api/review/answer")
    def answer(given: Answer, request: Request) -> Reply:
        """Save an answer; it is on disk when this returns. Sending it again changes nothing."""
        desk.answer(given.who, given.question, given.answer, assisted=given.assisted)
        return _reply(desk, request, given)

    @routes.post("/api/review/page")
    def page(given: Page, request: Request) -> Reply:
        """Save the answers of a page, all or none; they are on disk when this returns."""
        desk.answer_page(
            given.who, given.answers, page=given.page, order=given.order, assisted=given.assisted
        )
        return _reply(desk, request, given)

    @routes.post("/api/review/undo")
    def undo(ask: Undo, request: Request) -> Reply:
        """Take back your own last answer, or your last page."""
        undone = desk.undo(ask.who, ask.question)
        return _reply(desk, request, ask, undone)

    @routes.post("/api/review/reopen")
    def reopen(ask: Ask, request: Request) -> Reply:
        """Ask the skipped questions again."""
        desk.reopen(ask.who, ask.category)
        return _reply(desk, request, ask)

    @routes.get("/api/review/file")
    def file() -> FileResponse:
        """The CSV with all answers so far."""
        desk.saver.save()
        if desk.saver.problem:
            raise HTTPException(500, desk.saver.problem)
        return FileResponse(desk.out, filename=desk.out.name, media_type="text/csv")

    return routes


def _reply(desk: Desk, request: Request, ask: Ask, undone: Sequence[Question] = ()) -> Reply:
    client = "" if request.client is None else request.client.host
    questions = desk.next(ask.who, ask.category, ask.count, ask.order, client)
    progress = Progress(**desk.progress(ask.who, ask.category))
    ahead = desk.ahead(ask.who, ask.category, ask.ahead, ask.order) if ask.ahead else []
    return Reply(next=questions, progress=progress, undone=list(undone), ahead=ahead)
