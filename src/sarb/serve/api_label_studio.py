"""Routes of Label Studio's ML-backend protocol."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel, FailFast, Field

from sarb.errors import DataError
from sarb.serve.label_studio import Backend
from sarb.serve.strict_json import StrictRoute
from sarb.serve.turns import Workers

#: tasks in one request, and annotated tasks of a project
MAX_TASKS = 1000
MAX_ANNOTATED = 100_000
#: requests for predictions that are worked on at once
PREDICTORS = 2


class Setup(BaseModel):
    """A project connects: its labelling configuration, and a legacy token of its owner."""

    schema_: str = Field("", alias="schema")
    access_token: str | None = None


class Tasks(BaseModel):
    """Tasks to predict, with the labelling configuration of their project."""

    tasks: Annotated[list[dict[str, Any]], FailFast(), Field(max_length=MAX_TASKS)]
    label_config: str


class Validate(BaseModel):
    """A labelling configuration to check."""

    config: str = ""


class Train(BaseModel):
    """All annotated tasks of a project, ``1.1794964043``: its number and when it was made."""

    annotations: Annotated[list[dict[str, Any]], FailFast(), Field(max_length=MAX_ANNOTATED)] = []
    project: str = ""


def label_studio_routes(backend: Backend) -> APIRouter:
    """Return the routes. Label Studio expects errors as HTTP status with a text in ``detail``."""
    routes = APIRouter(tags=["label studio"], route_class=StrictRoute)
    predictors = Workers(PREDICTORS)

    @routes.get("/health")
    def health() -> dict[str, Any]:
        """Whether the backend can answer."""
        return {"status": "UP", "model_class": "sarb", "model_version": backend.version()}

    @routes.post("/setup")
    def setup(project: Setup) -> dict[str, str]:
        """Connect a project; the reply names the model."""
        return {"model_version": backend.setup(project.schema_, project.access_token or "")}

    @routes.post("/validate")
    def validate(given: Validate) -> dict[str, str]:
        """Check a labelling configuration."""
        try:
            backend.check(given.config)
        except DataError as error:
            raise HTTPException(422, str(error)) from None
        return {"status": "ok"}

    @routes.post("/predict")
    async def predict(given: Tasks) -> dict[str, Any]:
        """A prediction per task: yes or no for every category, and a score by which to order the tasks."""
        results = await predictors.run(lambda: backend.predict(given.tasks, given.label_config))
        return {"results": results, "model_version": backend.version()}

    @routes.get("/versions")
    def versions() -> dict[str, list[str]]:
        """The model that answers now."""
        return {"versions": [backend.version()]}

    @routes.post("/webhook", status_code=201)
    def webhook(content: dict[str, Any]) -> dict[str, str]:
        """Collect an annotation; it is on disk when this returns. START_TRAINING trains again."""
        return {"status": backend.webhook(str(content.get("action", "")), content)}

    @routes.post("/train", status_code=201)
    def train(given: Train) -> dict[str, str]:
        """Collect all annotations and train again, for servers that do not use the webhook for it."""
        return {"status": backend.train_on(given.annotations, given.project)}

    return routes
