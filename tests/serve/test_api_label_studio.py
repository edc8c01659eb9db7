"""Label Studio's ML-backend protocol, with requests in the shape in which version 1.23 sends them."""

import json

import pytest
from fastapi.testclient import TestClient

import sarb
from sarb.label_studio.config import labelling_config
from sarb.label_studio.host import Host
from sarb.label_studio.tasks import task_data
from sarb.serve.app import create_app
from sarb.serve.collected import Collected
from sarb.serve.label_studio import Backend
from sarb.serve.table import Table
from sarb.serve.task_images import TaskImages
from tests.conftest import COLOURS
from tests.serve.conftest import HOME

CONFIG = labelling_config(list(COLOURS))
PROJECT = {"id": 1, "title": "Squares", "label_config": CONFIG}


@pytest.fixture
def collected(gaps):
    made = Collected(
        Table(sarb.load(gaps / "labels.csv", encoding="binary")), gaps / "answered.csv", "labels.csv"
    )
    yield made
    made.close()


@pytest.fixture
def backend(recogniser, collected, gaps):
    images = TaskImages(Host("http://127.0.0.1:1"), [gaps.parent])
    return Backend(recogniser, images, collected)


@pytest.fixture
def studio(run, recogniser, backend):
    with TestClient(create_app(run, recogniser, backend=backend), base_url=HOME) as client:
        yield client


def task(number, name="00.jpg", known=None, image=None):
    image = image or f"/data/local-files/?d=mine/{name}"
    return {
        "id": number,
        "data": task_data(image, name, known or {}),
        "project": 1,
        "annotations": [],
        "predictions": [],
        "meta": {},
        "is_labeled": False,
        "overlap": 1,
    }


def ask(client, *tasks):
    request = {
        "tasks": list(tasks),
        "project": "1.1794964043",
        "label_config": CONFIG,
        "params": {"login": None, "password": None, "context": None},
    }
    return client.post("/predict", json=request)


def annotated(action, number, answers, name="00.jpg", **more):
    results = [
        {"from_name": key, "to_name": "image", "type": "choices", "value": {"choices": [word]}}
        for key, word in answers.items()
    ]
    annotation = {"id": number, "result": results, "was_cancelled": False, "task": 5, "project": 1, **more}
    return {"action": action, "annotation": annotation, "task": task(5, name), "project": PROJECT}


def answered(gaps, name="00.jpg"):
    data = sarb.load(gaps / "answered.csv", encoding="binary", test=0)
    row = data.train.labels.values[data.train.labels.paths.index(name)]
    return dict(zip(data.categories, row.tolist(), strict=True))


def test_connecting(studio):
    health = studio.get("/health").json()
    assert health["status"] == "UP"
    request = {
        "project": "1.1794964043",
        "schema": CONFIG,
        "hostname": "http://localhost:8080",
        "access_token": "abc",
        "extra_params": None,
    }
    version = studio.post("/setup", json=request).json()["model_version"]
    assert version == health["model_version"] and version.startswith("sarb squares ")
    assert studio.get("/versions", params={"project": "1.1"}).json() == {"versions": [version]}


def test_the_token_that_label_studio_sends_serves_only_without_one_of_our_own(backend):
    backend.setup(CONFIG, "theirs")
    assert backend.host.token == "theirs"
    backend.host.token = "ours"
    backend.setup(CONFIG, "theirs")
    assert backend.host.token == "ours"


def test_a_configuration_that_asks_about_nothing_of_ours(studio):
    other = labelling_config(["zebra"])
    assert studio.post("/validate", json={"config": CONFIG}).json() == {"status": "ok"}
    reply = studio.post("/validate", json={"config": other})
    assert reply.status_code == 422 and "named after a category of the model" in reply.json()["detail"]
    assert studio.post("/setup", json={"project": "1.1", "schema": other}).status_code == 400
    assert studio.post("/predict", json={"tasks": [], "label_config": "<View>"}).status_code == 400


def test_predictions_are_those_of_the_model_and_the_least_certain_scores_lowest(studio, recogniser, gaps):
    names = [f"{number:02d}.jpg" for number in range(20)]
    reply = ask(studio, *(task(number, name) for number, name in enumerate(names))).json()["results"]
    scores = sarb.predict(recogniser.model, [gaps / name for name in names])
    probabilities = recogniser.calibration(scores)
    present = probabilities >= recogniser.thresholds()
    for row, found in enumerate(reply):
        said = {result["from_name"]: result["value"]["choices"][0] for result in found["result"]}
        assert said == {
            name: "yes" if present[row, column] else "no" for column, name in enumerate(recogniser.categories)
        }
        sure = [p if yes else 1 - p for p, yes in zip(probabilities[row], present[row], strict=True)]
        assert found["score"] == pytest.approx(sum(sure) / len(sure), abs=1e-4)
        assert found["model_version"].startswith("sarb squares ")
    assert len({found["score"] for found in reply}) > 10


def test_known_labels_are_answered_as_they_are(studio):
    (found,) = ask(studio, task(1, known={"red": -1, "blue": 1})).json()["results"]
    said = {result["from_name"]: result for result in found["result"]}
    assert said["red"]["value"]["choices"] == ["no"] and said["blue"]["value"]["choices"] == ["yes"]
    assert said["red"]["score"] == said["blue"]["score"] == 1


def test_a_task_whose_image_cannot_be_read_has_an_empty_prediction(studio, capsys):
    found = ask(studio, task(1), task(2, "gone.jpg"), task(3, image="s3://bucket/a.jpg")).json()["results"]
    assert [len(entry["result"]) for entry in found] == [5, 0, 0]
    assert [entry["score"] > 0 for entry in found] == [True, False, False]
    assert "task 2: " in (said := capsys.readouterr().err) and "task 3: s3://bucket" in said


def test_annotations_are_collected_and_known_labels_kept(studio, gaps, collected):
    before = answered(gaps)
    unknown = [name for name, label in before.items() if label == 0]
    known = next(name for name, label in before.items() if label != 0)
    contrary = "no" if before[known] > 0 else "yes"
    answers = {unknown[0]: "yes", unknown[1]: "no", known: contrary}
    reply = studio.post("/webhook", json=annotated("ANNOTATION_CREATED", 9, answers))
    assert reply.status_code == 201 and reply.json() == {"status": "collected"}
    collected.saver.save()
    assert answered(gaps) == {**before, unknown[0]: 1, unknown[1]: -1}
    (line,) = (gaps / "answered.answers.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["answers"] == answers and json.loads(line)["file_name"] == "00.jpg"

    studio.post("/webhook", json=annotated("ANNOTATION_UPDATED", 9, {unknown[0]: "no"}))
    collected.saver.save()
    assert answered(gaps) == {**before, unknown[0]: -1}
    studio.post("/webhook", json=annotated("ANNOTATION_CREATED", 10, {unknown[0]: "yes"}))
    collected.saver.save()
    assert answered(gaps) == before  # two people disagree
    deleted = {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 9}], "project": PROJECT}
    studio.post("/webhook", json=deleted)
    collected.saver.save()
    assert answered(gaps) == {**before, unknown[0]: 1}


def test_many_annotations_at_once_and_what_is_ignored(studio, collected, capsys):
    one, two = (
        annotated("", number, {"red": "yes"}, name) for number, name in ((1, "02.jpg"), (2, "03.jpg"))
    )
    many = {
        "action": "ANNOTATIONS_CREATED",
        "annotation": [one["annotation"], two["annotation"]],
        "task": [one["task"], two["task"]],
        "project": PROJECT,
    }
    studio.post("/webhook", json=many)
    assert collected.tasks == 2
    skipped = annotated("ANNOTATION_CREATED", 3, {"red": "yes"}, "04.jpg", was_cancelled=True)
    studio.post("/webhook", json=skipped)
    assert collected.tasks == 2
    studio.post("/webhook", json=annotated("ANNOTATION_CREATED", 4, {"red": "yes"}, "stranger.jpg"))
    assert collected.tasks == 2 and "its image is not in labels.csv" in capsys.readouterr().err
    updated = {"action": "PROJECT_UPDATED", "project": PROJECT}
    assert studio.post("/webhook", json=updated).json() == {"status": "ignored"}


class Trainer:
    """Stands in for the training process."""

    after = 2

    def __init__(self, collected):
        self.collected = collected
        self.started = []

    def waiting(self):
        return self.collected.tasks

    def due(self):
        return self.waiting() >= self.after and not self.started

    def start(self, reason):
        self.started.append(reason)
        return "training"

    def close(self):
        pass


def test_training_starts_after_enough_answers_or_when_asked(studio, backend, collected, capsys):
    start = {"action": "START_TRAINING", "project": PROJECT}
    assert studio.post("/webhook", json=start).json() == {"status": "training is off"}
    assert "--retrain-after 0" in capsys.readouterr().err
    backend.retraining = Trainer(collected)
    for number, name in ((1, "02.jpg"), (2, "03.jpg"), (3, "04.jpg")):
        studio.post("/webhook", json=annotated("ANNOTATION_CREATED", number, {"red": "yes"}, name))
    assert backend.retraining.started == ["2 new answered tasks"]
    studio.post("/webhook", json=start)
    whole = {**task(6, "05.jpg"), "annotations": [annotated("", 8, {"red": "no"})["annotation"]]}
    request = {"annotations": [whole], "project": "1.1794964043", "label_config": CONFIG, "params": {}}
    assert studio.post("/train", json=request).json() == {"status": "training"}
    assert len(backend.retraining.started) == 3 and collected.tasks == 4


def test_a_second_start_goes_on_with_the_journal(studio, gaps, collected):
    before = answered(gaps)
    first = next(name for name, label in before.items() if label == 0)
    studio.post("/webhook", json=annotated("ANNOTATION_CREATED", 9, {first: "yes"}))
    collected.close()
    again = Collected(collected.table, gaps / "answered.csv", "labels.csv")
    try:
        assert again.tasks == 1 and answered(gaps) == {**before, first: 1}
    finally:
        again.close()


def test_without_labels_nothing_is_collected(run, recogniser, capsys):
    backend = Backend(recogniser, TaskImages(Host("http://127.0.0.1:1")))
    with TestClient(create_app(run, recogniser, backend=backend), base_url=HOME) as client:
        reply = client.post("/webhook", json=annotated("ANNOTATION_CREATED", 1, {"red": "yes"}))
    assert reply.json() == {"status": "not collected"} and "not collected" in capsys.readouterr().err


def test_pages_of_other_sites_cannot_reach_it(studio):
    reply = studio.post("/webhook", json={"action": "x"}, headers={"Origin": "http://evil.example"})
    assert reply.status_code == 403


@pytest.mark.parametrize(
    "odd", [None, 7, "x", [], [[]], {"id": {}}, {"data": 5}, {"data": {"image": "http://["}}]
)
def test_odd_content_is_no_error_of_ours(studio, odd):
    for content in (
        {"action": "ANNOTATION_CREATED", "project": odd, "annotation": odd, "task": odd},
        {
            "action": "ANNOTATION_CREATED",
            "project": PROJECT,
            "annotation": {"id": odd, "result": [odd]},
            "task": {"data": odd},
        },
        {
            "action": "ANNOTATION_CREATED",
            "annotation": {"result": [{"value": odd}]},
            "task": {"data": {"labels": odd}},
        },
        {"action": "ANNOTATIONS_DELETED", "project": odd, "annotations": [{"id": odd}]},
    ):
        assert studio.post("/webhook", json=content).status_code == 201
    assert (
        studio.post("/train", json={"annotations": [{"annotations": odd}], "project": "9" * 50}).status_code
        == 201
    )
    assert ask(studio, {"id": odd, "data": odd}).json()["results"][0]["result"] == []
    assert ask(studio, {"id": 1, "data": {"image": odd, "labels": {"red": odd}}}).status_code == 200


def test_a_client_cannot_fill_the_log(studio, capsys):
    assert ask(studio, *({"id": str(number) * 99, "data": {}} for number in range(500))).status_code == 200
    assert len(capsys.readouterr().err) < 20_000


def test_a_large_picture_is_scored_like_a_small_one(studio, gaps, monkeypatch):
    from sarb.serve import label_studio

    usual = ask(studio, task(1), task(2, "01.jpg")).json()["results"]
    monkeypatch.setattr(label_studio, "SMALL", 1)
    alone = ask(studio, task(1), task(2, "01.jpg")).json()["results"]
    assert [one["score"] for one in alone] == pytest.approx([one["score"] for one in usual], abs=1e-5)
