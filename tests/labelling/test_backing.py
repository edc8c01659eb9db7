import numpy as np
import pytest

from sarb.labelling.backing import Backing, backing, caution, wilson
from sarb.labelling.calibration import calibrate
from sarb.labelling.completion import complete
from tests.labelling.made_scores import make


def by_search(right, number, sign):
    """Wilson's bound by its definition: the share p that is 1.96 standard errors away from the seen one."""
    shares = np.linspace(0, 1, 200_001)
    inside = np.abs(right / number - shares) <= 1.96 * np.sqrt(shares * (1 - shares) / number)
    return shares[inside][0 if sign < 0 else -1]


@pytest.mark.parametrize(("right", "number"), [(11, 12), (4, 4), (0, 3), (90, 100)])
def test_wilson(right, number):
    low, high = wilson(right, number)
    assert low == pytest.approx(by_search(right, number, -1), abs=1e-4)
    assert high == pytest.approx(by_search(right, number, +1), abs=1e-4)


def test_without_labels_anything_is_possible():
    assert wilson(0, 0) == (0.0, 1.0)


def test_counts_the_known_labels_that_would_be_filled_in_the_same_way():
    counts = np.zeros((2, 1, 10), int)
    counts[0, 0] = [1, 0, 0, 0, 0, 5, 0, 0, 0, 8]
    counts[1, 0] = [20, 0, 0, 0, 0, 5, 0, 0, 0, 2]
    groups = [("sea", "present", 7, 0.96), ("sea", "absent", 30, 0.97)]
    present, absent = backing(counts, np.array([0.9]), np.array([0.1]), groups)
    assert (present.right, present.checked) == (8, 10)
    assert (absent.right, absent.checked) == (20, 21)
    assert (present.low, present.high) == wilson(8, 10)
    never = backing(counts, np.array([np.inf]), np.array([0.1]), [("sea", "present", 0, float("nan"))])
    assert never[0].checked == 0 and caution(never) == ""


def test_few_known_labels_are_named_and_many_are_not():
    scores, labels, _, _ = make(3_000, [2.0, 2.0], [0.0, 0.0], known=0.5)
    few = labels.values.copy()
    few[30:, 1] = 0
    filled = complete(
        scores,
        type(labels)(few, labels.categories, labels.paths),
        calibrate(scores, type(labels)(few, labels.categories, labels.paths)),
        min_confidence=0.9,
    )
    assert {one.label for one in filled.backing if one.filled and one.rough} == {"thing 1"}
    assert "thing 1 present (expected 0.9" in filled.caution and "thing 0" not in filled.caution
    assert "2 of 4 groups" in filled.caution


def test_a_model_that_is_not_calibrated_has_no_backing():
    scores, labels, _, _ = make(20, [2.0], [0.0], known=0.5)
    filled = complete(scores, labels)
    assert filled.backing == () and filled.caution == ""


def test_a_group_that_no_known_label_can_check_says_so():
    text = str(Backing("sea", "present", 3, 0.9, 0, 0, *wilson(0, 0)))
    assert text == "sea present (expected 0.900; no known label can check it)"
