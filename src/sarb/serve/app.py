"""The FastAPI application: the page, the report, and the routes of *Try* and *Review*."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel

from sarb import __version__
from sarb.errors import ImageError, SarbError
from sarb.runs.folder import RunFolder
from sarb.serve.api_images import image_routes
from sarb.serve.api_label_studio import label_studio_routes
from sarb.serve.api_review import review_routes
from sarb.serve.api_try import try_routes
from sarb.serve.bodies import MAX_UPLOAD, RETRY
from sarb.serve.desk import Desk
from sarb.serve.guard import Guard
from sarb.serve.journal import SaveError
from sarb.serve.label_studio import Backend
from sarb.serve.pictures import Pictures
from sarb.serve.questions import StaleError
from sarb.serve.recogniser import Recogniser
from sarb.serve.token import Token
from sarb.serve.turns import BusyError

STATIC = Path(str(resources.files("sarb.serve").joinpath("static")))
#: class of an error -> HTTP status of the reply
BUSY = 503
STATUS = {SarbError: 400, ImageError: 422, StaleError: 409, SaveError: 507, BusyError: BUSY}
#: mistakes that a reply lists
MOST_ERRORS = 10


class Info(BaseModel):
    """What is being served.

    ``ask`` is the split whose photos are reviewed, "" without a review; ``assist``: show the model's opinion
    with every question.
    """

    name: str
    model: str
    version: str
    categories: list[str]
    calibrated: bool
    probabilities: str
    thresholds: str
    review: bool
    ask: str
    assist: bool
    report: bool
    max_upload: int


def create_app(
    run: Path,
    recogniser: Recogniser,
    desk: Desk | None = None,
    *,
    backend: Backend | None = None,
    host: str = "127.0.0.1",
    limit: int = MAX_UPLOAD,
    token: str = "",
) -> FastAPI:
    """Return the application.

    Args:
        run: run or model folder; its ``report.html`` is shown, if there is one.
        recogniser: the model.
        desk: the review, if there are labels to review; closed when the application stops.
        backend: the ML backend of Label Studio, if it is served; closed when the application stops.
        host: the address that the server listens on, see :mod:`sarb.serve.guard`.
        limit: most bytes in one request.
        token: what a request must know, see :mod:`sarb.serve.token`; "" for nothing.
    """

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        if desk is not None:
            desk.close()
        if backend is not None:
            backend.close()

    # no /docs page: it loads its script from a CDN, and this server needs no other site
    app = FastAPI(title="sarb", version=__version__, docs_url=None, redoc_url=None, lifespan=life)
    if token:
        app.add_middleware(Token, token=token)
    app.add_middleware(Guard, host=host, limit=limit)  # the last is the first to see a request
    for error_class, status in STATUS.items():
        app.add_exception_handler(error_class, _error_reply(status))
    app.add_exception_handler(RequestValidationError, _say_what_is_wrong)
    _page_routes(app, run.resolve(), recogniser, desk, limit)
    app.include_router(try_routes(recogniser))
    if backend is not None:
        app.include_router(label_studio_routes(backend))
    if desk is not None:
        app.include_router(review_routes(desk))
        # the labels may list the categories in another order than the model; Pictures reorders the heat maps
        app.include_router(image_routes(Pictures(desk.table.files, recogniser, desk.categories)))
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app


def _page_routes(app: FastAPI, run: Path, recogniser: Recogniser, desk: Desk | None, limit: int) -> None:
    report = RunFolder(run).report_page

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    @app.get("/api/info", tags=["page"])
    def info() -> Info:
        """What is being served: the model, its categories, and which parts the page has."""
        return Info(
            name=run.name,
            model=repr(recogniser.model),
            version=__version__,
            categories=list(recogniser.categories),
            calibrated=recogniser.calibration.fitted,
            probabilities=recogniser.calibration.probabilities_are,
            thresholds=recogniser.calibration.thresholds_are,
            review=desk is not None,
            ask="" if desk is None else desk.ask,
            assist=desk is not None and desk.assist,
            report=report.is_file(),
            max_upload=limit,
        )

    @app.get("/report", tags=["page"], response_class=FileResponse)
    def show_report() -> FileResponse:
        """The run's report."""
        if not report.is_file():
            raise HTTPException(404, f"{run.name} has no report; 'sarb report RUN' writes one")
        return FileResponse(report, media_type="text/html")


def _error_reply(status: int) -> Any:
    """Reply to an error with its message as JSON."""
    headers = {"Retry-After": str(RETRY)} if status == BUSY else {}

    async def handler(_: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, status_code=status, headers=headers)

    return handler


async def _say_what_is_wrong(_: Request, error: Exception) -> JSONResponse:
    """Reply with the place and the reason, but not with what was sent, which may be of any kind and size."""
    found = error.errors()[:MOST_ERRORS] if isinstance(error, RequestValidationError) else []
    detail = [{"loc": [*each["loc"]], "msg": each["msg"], "type": each["type"]} for each in found]
    return JSONResponse({"detail": detail}, status_code=422)
