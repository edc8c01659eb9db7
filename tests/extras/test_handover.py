"""What we hand to cleanlab, Hugging Face datasets and FiftyOne works there."""

import numpy as np
import pytest
from PIL import Image

import sarb

CATEGORIES = ["cat", "dog", "bird"]


@pytest.fixture
def judged():
    """Labels of 300 images, a third of them unknown; scores that know the truth; five labels are wrong."""
    random = np.random.RandomState(0)
    truth = np.where(random.random_sample((300, 3)) < 0.4, 1, -1)
    logits = truth * 3 + random.standard_normal((300, 3))
    values = np.where(random.random_sample((300, 3)) < 1 / 3, 0, truth)
    wrong = np.argwhere(values != 0)[random.permutation((values != 0).sum())[:5]]
    for row, column in wrong:
        values[row, column] *= -1
        logits[row, column] = -values[row, column] * 5
    paths = [f"{number}.jpg" for number in range(300)]
    return sarb.Scores(logits, CATEGORIES, paths), sarb.LabelMatrix(values, CATEGORIES, paths), wrong


def test_cleanlab_finds_wrong_labels_among_the_known_ones(judged):
    from cleanlab.filter import find_label_issues

    scores, labels, wrong = judged
    found = set()
    for column, (_, problem) in enumerate(scores.to_cleanlab(labels).items()):
        marked = find_label_issues(problem.labels, problem.pred_probs)
        found |= {(int(row), column) for row in problem.rows[marked]}
    assert {tuple(entry) for entry in wrong.tolist()} <= found and len(found) < 30
    assert all(labels.values[row, column] != 0 for row, column in found)


def test_cleanlab_takes_the_multi_label_form_of_whole_labels(judged):
    from cleanlab.multilabel_classification.filter import find_label_issues

    scores, labels, _ = judged
    whole = sarb.complete(scores, labels).labels
    marked = find_label_issues(whole.to_cleanlab(), scores.probabilities)
    assert marked.shape == (300,)


def test_datasets(judged, tmp_path):
    scores, labels, _ = judged
    for name in labels.paths:
        Image.new("RGB", (4, 4)).save(tmp_path / name)
    made = labels.to_datasets(root=tmp_path)
    assert made.features["present"].feature.names == CATEGORIES
    for row, item in enumerate(made):
        assert item["present"] == np.flatnonzero(labels.values[row] == 1).tolist()
        assert item["absent"] == np.flatnonzero(labels.values[row] == -1).tolist()
        assert item["image"].size == (4, 4)
    probability = scores.to_datasets()[7]["probability"]
    assert probability == pytest.approx(dict(zip(CATEGORIES, scores.probabilities[7], strict=True)), abs=1e-6)
    filled = sarb.complete(scores, labels)
    item = filled.to_datasets()[0]
    kinds = ("present", "absent", "filled_present", "filled_absent")
    assert sorted(number for kind in kinds for number in item[kind]) == [0, 1, 2]
    made.save_to_disk(str(tmp_path / "stored"))


def test_fiftyone_samples_are_made_without_its_database(judged):
    fiftyone = pytest.importorskip("fiftyone")

    scores, labels, _ = judged
    sample = labels.to_fiftyone(root="/photos")[3]
    assert isinstance(sample, fiftyone.Sample) and sample.filepath == "/photos/3.jpg"
    shown = [entry.label for entry in sample["present"].classifications]
    assert shown == [CATEGORIES[column] for column in np.flatnonzero(labels.values[3] == 1)]
    predicted = scores.to_fiftyone()[3]["predictions"].classifications
    assert [entry.confidence for entry in predicted] == [
        value for value in scores.probabilities[3].tolist() if value >= 0.5
    ]
    filled = sarb.complete(scores, labels).to_fiftyone()[3]
    assert {"present", "absent", "filled_present", "filled_absent"} <= set(filled.field_names)
