import numpy as np

from sarb.labelling.calibration import Calibration
from sarb.labelling.suggestion import suggest
from sarb.labels import LabelMatrix
from sarb.scores import Scores
from sarb.serve.order import order

RANDOM = np.random.RandomState(0)
LABELS = LabelMatrix(RANDOM.randint(-1, 2, (8, 4)), list("abcd"), [f"{n}.jpg" for n in range(8)])
SCORES = Scores(RANDOM.normal(size=(8, 4)), list("abcd"), LABELS.paths)
PLAIN = Calibration.identity("abcd")


def test_every_unknown_entry_once_and_no_known_one():
    places, _ = order(SCORES, LABELS, PLAIN, budget=5)
    assert sorted(places) == np.flatnonzero(LABELS.values == 0).tolist()


def test_suggestions_first_the_rest_by_uncertainty():
    places, reasons = order(SCORES, LABELS, PLAIN, budget=5)
    asked = suggest(SCORES, LABELS, 5)
    assert places[:5].tolist() == [
        row * 4 + column for row, column in zip(asked.row, asked.column, strict=True)
    ]
    assert [reasons[place] for place in places[:5].tolist()] == [ask.reason for ask in asked.questions]
    doubt = np.abs(SCORES.probabilities.ravel()[places[5:]] - 0.5)
    assert len(doubt) > 3 and (np.diff(doubt) >= 0).all()


def test_unreadable_images_are_not_asked():
    readable = np.arange(8) != 3
    places, _ = order(SCORES, LABELS, PLAIN, readable, budget=5)
    expected = [place for place in np.flatnonzero(LABELS.values == 0).tolist() if place // 4 != 3]
    assert sorted(places) == expected and len(expected) < (LABELS.values == 0).sum()
