"""The whole way with Label Studio itself: push, answer, predict, collect, train, pull, train."""

import json
import os
import re
import signal
import subprocess
import sys
import threading

import pytest

import sarb
from sarb.label_studio.host import Host
from tests.conftest import COLOURS
from tests.extras.studio import Studio, Witness
from tests.waiting import PATIENCE, wait_until

sdk = pytest.importorskip("label_studio_sdk")

TASKS, ANSWERED, UPLOADED = 100, 40, 5
OPTIONS = ["-o", "encoding=binary"]
TRAINING = [
    "--method",
    "partial_bce",
    "--backbone",
    "tiny",
    "--epochs",
    "12",
    "--image-size",
    "64",
    "--quiet",
]


class Shell:
    """Runs ``sarb`` in a folder, and prints what was asked and said: the transcript."""

    def __init__(self, folder, **environment):
        self.folder = folder
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1", **environment}

    def sarb(self, *words):
        words = [str(word) for word in words]
        print("\n$ sarb", *words, flush=True)
        done = subprocess.run(
            [sys.executable, "-m", "sarb.cli", *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE * 4,
        )
        print(done.stderr + done.stdout, end="", flush=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def serve(self, *words):
        return Served(self, [str(word) for word in words])


class Served:
    """``sarb serve`` in the background."""

    def __init__(self, shell, words):
        print("\n$ sarb serve", *words, flush=True)
        self.said = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sarb.cli", "serve", *words, "--port", "0"],
            cwd=shell.folder,
            env=shell.environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._listen, daemon=True).start()
        wait_until(lambda: self.found(r" at (http://\S+)/ "), "the backend serves")
        self.url = self.found(r" at (http://\S+)/ ")[1]

    def _listen(self):
        for line in self.process.stderr:
            self.said.append(line)
            print(line, end="", flush=True)

    def found(self, pattern):
        assert self.process.poll() is None or self.said, "the backend ended"
        return re.search(pattern, "".join(self.said))

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


@pytest.fixture
def studio(program, tmp_path, photos):
    server = Studio(program, tmp_path, photos.parent)
    print(f"\nLabel Studio answers at {server.url}", flush=True)
    yield server
    server.close()


def values(path):
    data = sarb.load(path, encoding="binary")
    return {
        name: row
        for part in data.splits.values()
        for name, row in zip(part.labels.paths, part.labels.values.tolist(), strict=True)
    }


def expected(before, given):
    """The labels of the table with the answers where it knows nothing."""
    names = list(COLOURS)
    return {
        name: [given.get(name, {}).get(names[column], label) for column, label in enumerate(row)]
        for name, row in before.items()
    }


def retrieve(client, project):
    """Ask for predictions of all tasks, as the page does."""
    client.actions.create(
        id="retrieve_tasks_predictions", project=project, selected_items={"all": True, "excluded": []}
    )


def answer(client, task, truth, number):
    """Answer what is unknown of a task; of every fifth task, the first of several questions stays untouched."""
    asked = [name for name in COLOURS if name not in task.data["labels"]]
    untouched = 1 if number % 5 == 0 and len(asked) > 1 else 0
    given = {name: truth[task.data["file_name"]][name] for name in asked[untouched:]}
    result = [
        {
            "from_name": name,
            "to_name": "image",
            "type": "choices",
            "value": {"choices": ["yes" if label > 0 else "no"]},
        }
        for name, label in given.items()
    ]
    client.annotations.create(id=task.id, result=result, was_cancelled=False)
    return given


def test_the_whole_way(studio, photos, tmp_path):
    token = studio.token()
    shell = Shell(tmp_path, LABEL_STUDIO_API_KEY=token, LABEL_STUDIO_URL=studio.url)
    client = sdk.LabelStudio(base_url=studio.url, api_key=token)
    labels = photos / "labels.csv"
    shell.sarb("train", "--data", labels, *OPTIONS, *TRAINING, "--out", "runs/first")

    push = ("data", "push", "label-studio", labels, *OPTIONS)
    local = ("--images", "local", "--document-root", photos.parent)
    project = int(shell.sarb(*push, "--model", "runs/first", *local, "--title", "Squares"))
    shell.sarb(*push, "--model", "runs/first", *local, "--project", project)  # a second push adds nothing
    other = int(shell.sarb(*push, "--limit", UPLOADED, "--title", "Uploaded"))
    tasks = {task.id: task for task in client.tasks.list(project=project)}
    assert len(tasks) == TASKS
    assert all(len(task.predictions) == 1 for task in tasks.values())
    scores = {number: task.predictions[0].score for number, task in tasks.items() if not task.is_labeled}
    assert len(set(scores.values())) > TASKS / 2

    backend = shell.serve(
        *("runs/first", "--label-studio", "--local-root", photos.parent, "--retrain-after", ANSWERED),
    )
    witness = Witness(backend.url)
    try:
        _connected(client, witness, project, other)
        _answered(client, Host(studio.url, token), backend, photos, project, tasks, scores)
        _trained(client, backend, witness, project)
    finally:
        witness.close()
        backend.close()
    _pulled(client, shell, photos, tmp_path, project)


def _connected(client, witness, project, other):
    """Label Studio connects to the backend, and asks it about uploaded images."""
    for number in (project, other):
        made = client.ml.create(url=witness.url, project=number, title="sarb")
        assert client.ml.get(id=made.id).state == "CO", made
    retrieve(client, other)
    asked = witness.bodies("/predict")
    assert sum(len(body["tasks"]) for body in asked) == UPLOADED
    assert all(task["data"]["image"].startswith("/data/upload/") for task in asked[0]["tasks"])
    for task in client.tasks.list(project=other):
        (prediction,) = task.predictions
        assert len(prediction.result) == len(COLOURS) and prediction.model_version.startswith("sarb first ")
    agents = {(path, agent.split("/")[0]) for path, agent, _, status in witness.seen if status == 200}
    print("\nLabel Studio asked:", *sorted(agents), sep="\n  ", flush=True)
    assert {("/health", "heartex"), ("/setup", "heartex"), ("/predict", "heartex")} <= agents


def _answered(client, host, backend, photos, project, tasks, scores):
    """People answer 40 tasks in Label Studio's own order; the backend collects the answers."""
    truth = {name: dict(zip(COLOURS, row, strict=True)) for name, row in values(photos / "truth.csv").items()}
    given = {}
    for number in range(ANSWERED):
        task = tasks[json.loads(host.get(f"/api/projects/{project}/next/"))["id"]]
        rest = [score for other, score in scores.items() if tasks[other].data["file_name"] not in given]
        assert scores[task.id] == min(rest)  # active learning: the least certain first
        given[task.data["file_name"]] = answer(client, task, truth, number)
    wait_until(lambda: backend.found("training again"), "40 answers start a training")
    wanted = expected(values(photos / "labels.csv"), given)
    wait_until(lambda: values(photos / "answered.csv") == wanted, "the answers are in the table")
    lines = (photos / "answered.answers.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == ANSWERED
    print(f"\n{ANSWERED} tasks answered; the journal: {lines[0]}", flush=True)


def _trained(client, backend, witness, project):
    """The training that the answers started ends, and the new model answers; the button starts another one."""
    wait_until(lambda: backend.found("first-2 answers from now on"), "the new model answers")
    retrieve(client, project)
    versions = [
        prediction.model_version.split()[1]
        for task in client.tasks.list(project=project)
        for prediction in task.predictions
    ]
    print(
        "\npredictions by model:", {name: versions.count(name) for name in sorted(set(versions))}, flush=True
    )
    assert versions.count("first") == versions.count("first-2") == TASKS
    (connected,) = client.ml.list(project=project)
    client.ml.train(id=connected.id)
    pressed = [body.get("action", "") for body in witness.bodies("/webhook")].count("START_TRAINING")
    print(
        f"Start training arrived: {pressed} × /webhook, {len(witness.bodies('/train'))} × /train", flush=True
    )
    assert pressed + len(witness.bodies("/train")) == 1
    wait_until(lambda: backend.found("first-3 answers from now on"), "the button trains again")


def _pulled(client, shell, photos, folder, project):
    """The answers come back into the user's table, and a model is trained on it."""
    labels = photos / "labels.csv"
    content = labels.read_bytes()
    pull = (
        "data",
        "pull",
        "label-studio",
        labels,
        *OPTIONS,
        "--project",
        project,
        "--out",
        photos / "pulled.csv",
    )
    shell.sarb(*pull)
    assert values(photos / "pulled.csv") == values(photos / "answered.csv")
    assert labels.read_bytes() == content  # the user's own file never changes
    before, after = (
        [label for row in values(file).values() for label in row] for file in (labels, photos / "pulled.csv")
    )
    for word, label in (("present", 1), ("absent", -1), ("unknown", 0)):
        print(f"{word}: {before.count(label)} before, {after.count(label)} now", flush=True)
        assert (after.count(label) < before.count(label)) == (label == 0)
    export = folder / "export.json"
    export.write_text(json.dumps(client.projects.exports.as_json(project)), encoding="utf-8")
    read = sarb.load(f"label_studio:{export}", root=photos.parent, categories=",".join(COLOURS), test=0)
    answered = {
        name.rpartition("/")[2]: row
        for name, row in zip(read.train.labels.paths, read.train.labels.values.tolist(), strict=True)
    }
    mine = values(labels)
    for name, row in values(photos / "pulled.csv").items():
        new = [now if known == 0 else 0 for now, known in zip(row, mine[name], strict=True)]
        assert name not in answered or 0 not in mine[name] or answered[name] == new, name
    shell.sarb("train", "--data", photos / "pulled.csv", *OPTIONS, *TRAINING, "--out", "runs/pulled")
    assert sarb.load_model(folder / "runs" / "pulled").categories == tuple(COLOURS)
