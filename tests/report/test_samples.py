"""Which pictures are shown, and what is said about them."""

from dataclasses import replace

import numpy as np
from PIL import Image

from sarb.labelling.calibration import Calibration
from sarb.labels import LabelMatrix
from sarb.report.samples import MARKS, choose, judge, read_samples, sample_grid
from sarb.scores import Scores
from tests.report.conftest import draw_pictures, make_case
from tests.report.test_plots import colours


def test_judge_marks_every_case_once():
    probabilities = np.array([0.9, 0.8, 0.5, 0.2, 0.1])
    guesses = judge(probabilities, probabilities >= 0.5, np.array([-1, 1, 0, 1, -1]), list("abcde"))
    assert [(guess.label, guess.mark) for guess in guesses] == [
        ("a", "wrong"),
        ("b", "correct"),
        ("c", "unknown"),
        ("d", "missed"),
    ]
    assert {guess.mark for guess in guesses} == set(MARKS)


def test_choose_spreads_from_best_to_worst_and_skips_what_says_nothing():
    # image 0: all right; 1: half right; 2: all wrong; 3: nothing known; 4: nothing predicted, nothing present
    predicted = np.array([[1, 1], [1, 1], [1, 1], [1, 1], [0, 0]], bool)
    labels = LabelMatrix([[1, 1], [1, -1], [-1, -1], [0, 0], [-1, -1]], ["a", "b"])
    assert choose(predicted, labels, 12) == [0, 1, 2]
    assert choose(predicted, labels, 2) == [0, 2]
    assert choose(predicted[[3]], labels.take([3])) == []


def test_samples_show_calibrated_probabilities_and_decisions(tmp_path):
    scores = Scores([[1.0, -1.0]], ["a", "b"])
    labels = LabelMatrix([[1, 1]], ["a", "b"], draw_pictures(tmp_path, 1))
    own = read_samples(scores, labels)[0].guesses
    assert [(guess.label, guess.mark) for guess in own] == [("a", "correct"), ("b", "missed")]
    plain = Calibration.identity(["a", "b"])
    turned = replace(plain, method="platt", offset=np.array([-2.0, 2.0]), thresholds=np.array([0.3, 0.8]))
    read = read_samples(scores, labels, turned)[0].guesses
    assert [(guess.label, guess.mark) for guess in read] == [("b", "missed"), ("a", "missed")]
    assert [guess.probability for guess in read] == [turned(scores)[0, 1], turned(scores)[0, 0]]


def test_read_samples_leaves_out_what_cannot_be_read(tmp_path):
    paths = draw_pictures(tmp_path, 6)
    (tmp_path / "text.jpg").write_text("no picture")
    scores, labels = make_case(9, 8, paths=[*paths, str(tmp_path / "text.jpg"), str(tmp_path / "gone.jpg")])
    samples = read_samples(scores, labels, count=8, side=50, lines=2)
    assert 0 < len(samples) <= 6 and all(max(sample.picture.size) <= 50 for sample in samples)
    assert all(len(sample.guesses) <= 2 for sample in samples) and any(sample.hidden for sample in samples)
    assert colours(sample_grid(samples)) > 100
    assert isinstance(samples[0].picture, Image.Image)


def test_grid_of_one_and_of_none(tmp_path):
    scores, labels = make_case(1, 1, paths=draw_pictures(tmp_path, 1))
    assert colours(sample_grid(read_samples(scores, labels))) > 10
    assert colours(sample_grid([])) > 5
