import numpy as np
import pytest

from sarb.data.dataset import Data, Dataset
from sarb.label_studio.config import labelling_config, read_config
from sarb.label_studio.tasks import annotation, image_names, known_labels, prediction, task_data
from sarb.labels import LabelMatrix

QUESTIONS = read_config(labelling_config(["cat", "dog", "bird"])).questions


def choices(results):
    return {result["from_name"]: result["value"]["choices"][0] for result in results}


def test_known_labels_go_there_and_back():
    data = task_data("/data/upload/1/a.jpg", "a.jpg", {"cat": 1, "dog": -1, "bird": 0})
    assert data["labels"] == {"cat": "yes", "dog": "no"} and data["known"] == "Known: cat: yes, dog: no"
    assert known_labels(data) == {"cat": 1, "dog": -1}
    assert known_labels({}) == known_labels({"labels": "cat"}) == known_labels({"labels": {"cat": "?"}}) == {}


def test_a_prediction_answers_every_question_of_the_model():
    made = prediction(
        QUESTIONS, {"cat": 0.9, "dog": 0.3, "fish": 1.0}, {"cat": 0.5, "dog": 0.2, "fish": 0.5}, {}, "m"
    )
    assert choices(made["result"]) == {"cat": "yes", "dog": "yes"}  # 0.3 is above its threshold; no bird
    assert [result["score"] for result in made["result"]] == [0.9, 0.3]
    assert made["score"] == pytest.approx(np.mean([0.9, 0.3])) and made["model_version"] == "m"


def test_a_known_label_is_kept_and_does_not_count_in_the_score():
    half = dict.fromkeys(("cat", "dog", "bird"), 0.5)
    made = prediction(QUESTIONS, {"cat": 0.9, "dog": 0.2, "bird": 0.6}, half, {"cat": -1}, "m")
    assert choices(made["result"]) == {"cat": "no", "dog": "no", "bird": "yes"}
    assert made["score"] == pytest.approx(np.mean([0.8, 0.6]))
    assert prediction(QUESTIONS[:1], {"cat": 0.9}, half, {"cat": -1}, "m")["score"] == 1


def test_uncertain_answers_can_be_left_out_but_lower_the_score():
    half = dict.fromkeys(("cat", "dog"), 0.5)
    made = prediction(QUESTIONS, {"cat": 0.9, "dog": 0.5}, half, {}, "m", min_confidence=0.8)
    assert choices(made["result"]) == {"cat": "yes"} and made["score"] == pytest.approx(0.7)


def test_an_annotation_holds_only_what_is_known():
    assert choices(annotation(QUESTIONS, {"cat": 1, "dog": 0, "bird": -1})["result"]) == {
        "cat": "yes",
        "bird": "no",
    }


def test_names_that_two_splits_share_become_whole_paths(tmp_path):
    part = LabelMatrix([[1]], ["cat"], ["a.jpg"])
    data = Data(Dataset(part, tmp_path / "one"), Dataset(part, tmp_path / "two"))
    assert image_names(data) == {
        "train": [str(tmp_path / "one/a.jpg")],
        "test": [str(tmp_path / "two/a.jpg")],
    }
