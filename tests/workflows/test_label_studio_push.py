"""Push and pull against a stand-in for the SDK; tests/extras does the same with Label Studio itself."""

import json
import shutil
import sys
from types import SimpleNamespace

import pytest

import sarb
from sarb.errors import ConfigError, DataError, SarbError
from sarb.label_studio.host import Host
from sarb.workflows.label_studio_pull import pull_session
from sarb.workflows.label_studio_push import push_session
from tests.conftest import COLOURS
from tests.serve.conftest import run  # noqa: F401  (a fixture)


class Studio:
    """One project of a server, in memory."""

    def __init__(self):
        self.project = None
        self.tasks_ = []
        self.storages = []
        self.projects = SimpleNamespace(
            create=self._create,
            get=lambda id: self.project,
            import_tasks=self._import,
            exports=SimpleNamespace(as_json=lambda id: json.loads(json.dumps(self.tasks_))),
        )
        self.tasks = SimpleNamespace(
            list=lambda project: [SimpleNamespace(data=task["data"]) for task in self.tasks_]
        )
        local = SimpleNamespace(
            list=lambda project: self.storages,
            create=lambda **given: self.storages.append(SimpleNamespace(**given)),
        )
        self.import_storage = SimpleNamespace(local=local)

    def _create(self, **given):
        self.project = SimpleNamespace(id=7, **given)
        return self.project

    def _import(self, id, request):
        self.tasks_ += [
            {"id": len(self.tasks_) + n, "annotations": [], **task} for n, task in enumerate(request)
        ]

    def answer(self, name, **answers):
        task = next(task for task in self.tasks_ if task["data"]["file_name"] == name)
        results = [
            {"from_name": key, "type": "choices", "value": {"choices": [word]}}
            for key, word in answers.items()
        ]
        task["annotations"].append({"id": 1, "result": results, "was_cancelled": False})


@pytest.fixture
def studio(monkeypatch):
    made = Studio()
    made.host = Host("http://studio.test", "token")
    monkeypatch.setattr(made.host, "client", lambda: made)
    monkeypatch.setattr(made.host, "upload", lambda project, file: f"/data/upload/{project}/ab-{file.name}")
    return made


@pytest.fixture
def photos(squares, tmp_path):
    """Four photos in ``root/photos``; all labels of the first are known, none of the last."""
    folder = tmp_path / "root" / "photos"
    folder.mkdir(parents=True)
    lines = ["file_name,red,green,blue,yellow,white"]
    for name, row in (("00", "1,0,1,0,0"), ("01", "1,,,,0"), ("02", "0,,1,,"), ("03", ",,,,")):
        shutil.copy(squares / f"{name}.jpg", folder / f"{name}.jpg")
        lines.append(f"{name}.jpg,{row}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


OPTIONS = {"encoding": "binary", "test": "0"}


def push(studio, photos, **options):
    return push_session(str(photos / "labels.csv"), studio.host, options=OPTIONS, **options)


def pull(studio, photos, out="answered.csv", **options):
    return pull_session(str(photos / "labels.csv"), studio.host, 7, photos / out, options=OPTIONS, **options)


def rows(path):
    labels = sarb.load(path, **OPTIONS).train.labels
    return dict(zip(labels.paths, labels.values.tolist(), strict=True))


def test_known_labels_are_shown_and_a_finished_image_is_annotated(studio, photos):
    pushed = push(studio, photos, title="Mine")
    assert (pushed.tasks, pushed.known, pushed.complete, pushed.predictions) == (4, 9, 1, 0)
    assert (studio.project.title, studio.project.show_collab_predictions) == ("Mine", False)
    assert studio.project.sampling == "Uncertainty sampling"
    first, second, *_ = studio.tasks_
    assert len(first["annotations"][0]["result"]) == 5 and second["annotations"] == []
    assert second["data"]["labels"] == {"red": "yes", "white": "no"}
    assert second["data"]["image"] == "/data/upload/7/ab-01.jpg"


def test_a_second_push_adds_only_what_is_new(studio, photos):
    assert push(studio, photos, limit=3).tasks == 3
    again = push(studio, photos, project=7)
    assert (again.tasks, again.there, len(studio.tasks_)) == (1, 3, 4)


def test_local_files(studio, photos):
    push(studio, photos, images="local", document_root=photos.parent)
    assert [storage.path for storage in studio.storages] == [str(photos)]
    assert studio.tasks_[0]["data"]["image"] == "/data/local-files/?d=photos/00.jpg"
    with pytest.raises(ConfigError, match="needs --document-root"):
        push(studio, photos, images="local")
    with pytest.raises(DataError, match="does not serve images from its document root itself"):
        push(studio, photos, images="local", document_root=photos)
    with pytest.raises(DataError, match="must be in a folder below"):
        push(studio, photos, images="local", document_root=photos / "elsewhere")


def test_predictions(studio, photos, run):  # noqa: F811
    (photos / "03.jpg").write_bytes(b"no image")
    pushed = push(studio, photos, run=run, prefill=True)
    assert (pushed.tasks, pushed.predictions) == (3, 3) and "03.jpg" in pushed.skipped[0][0]
    assert studio.project.show_collab_predictions
    for task in studio.tasks_:
        (prediction,) = task["predictions"]
        said = {result["from_name"]: result["value"]["choices"][0] for result in prediction["result"]}
        assert said.keys() == set(COLOURS) and task["data"]["labels"].items() <= said.items()
        assert 0.5 < prediction["score"] <= 1 and prediction["model_version"].startswith("sarb squares ")


def test_the_least_certain_images_go_first(studio, photos, run):  # noqa: F811
    push(studio, photos, run=run)
    every = {task["data"]["file_name"]: task["predictions"][0]["score"] for task in studio.tasks_}
    studio.tasks_.clear()
    push(studio, photos, run=run, limit=2)
    assert [task["data"]["file_name"] for task in studio.tasks_] == sorted(every, key=every.get)[:2]


def test_a_project_with_other_questions_is_refused(studio, photos):
    studio._create(label_config='<View><Image name="i" value="$image"/></View>')
    with pytest.raises(DataError, match="no yes/no question about red, green"):
        push(studio, photos, project=7)


def test_answers_come_back_and_what_nobody_touched_stays_unknown(studio, photos):
    push(studio, photos)
    studio.answer("01.jpg", green="yes", blue="no")
    studio.answer("03.jpg", white="no")
    studio.tasks_.append({"data": {"image": "/data/upload/7/x.jpg", "file_name": "x.jpg"}, "annotations": []})
    before = (photos / "labels.csv").read_bytes()
    pulled = pull(studio, photos)
    assert rows(photos / "answered.csv") == {
        "00.jpg": [1, -1, 1, -1, -1],
        "01.jpg": [1, 1, -1, 0, -1],
        "02.jpg": [-1, 0, 1, 0, 0],
        "03.jpg": [0, 0, 0, 0, -1],
    }
    assert (pulled.tasks, pulled.new, pulled.unknown, pulled.strangers) == (3, {1: 1, -1: 2}, 8, 1)
    assert (photos / "labels.csv").read_bytes() == before
    assert not (photos / "answered.csv.conflicts.csv").exists()
    with pytest.raises(DataError, match="exists already; add --overwrite"):
        pull(studio, photos)
    with pytest.raises(DataError, match="this is the source itself"):
        pull(studio, photos, out="labels.csv", overwrite=True)


def test_an_answer_against_a_known_label_is_listed_not_taken(studio, photos):
    push(studio, photos)
    studio.answer("01.jpg", red="no", green="yes")
    pulled = pull(studio, photos)
    assert rows(photos / "answered.csv")["01.jpg"] == [1, 1, 0, 0, -1]
    (conflict,) = pulled.conflicts
    assert conflict == {"file_name": "01.jpg", "label": "red", "given": "present", "answer": "absent"}
    assert "01.jpg,red,present,absent" in (photos / "answered.csv.conflicts.csv").read_text(encoding="utf-8")
    pull(studio, photos, replace_known=True, overwrite=True)
    assert rows(photos / "answered.csv")["01.jpg"] == [-1, 1, 0, 0, -1]


def test_people_who_disagree(studio, photos):
    push(studio, photos)
    studio.answer("03.jpg", red="no", green="no")
    studio.answer("03.jpg", red="yes")
    assert pull(studio, photos).disputed == 1
    assert rows(photos / "answered.csv")["03.jpg"] == [0, -1, 0, 0, 0]
    pull(studio, photos, annotators="any", overwrite=True)
    assert rows(photos / "answered.csv")["03.jpg"] == [1, -1, 0, 0, 0]


def test_without_the_sdk_or_a_token(photos, monkeypatch):
    monkeypatch.setitem(sys.modules, "label_studio_sdk", None)
    with pytest.raises(SarbError, match=r"pip install 'sarb\[label-studio\]'"):
        push_session(str(photos / "labels.csv"), Host("http://studio.test", "x"), options=OPTIONS)
    fake = SimpleNamespace(LabelStudio=lambda **_: None)
    monkeypatch.setitem(sys.modules, "label_studio_sdk", fake)
    with pytest.raises(SarbError, match=r"no token for http://studio\.test"):
        push_session(str(photos / "labels.csv"), Host("http://studio.test"), options=OPTIONS)


def test_errors_of_the_sdk_are_one_line_without_headers():
    class ApiError(Exception):
        def __init__(self):
            self.status_code = 401
            self.body = {"detail": "Invalid token.", "exc_info": None}

        def __str__(self):
            return "headers: {'set-cookie': 'secret'}"

    with pytest.raises(SarbError) as error, Host("http://studio.test").errors():
        raise ApiError()
    assert str(error.value) == "http://studio.test: HTTP 401: Invalid token."
    with pytest.raises(ZeroDivisionError), Host("http://studio.test").errors():
        raise ZeroDivisionError
