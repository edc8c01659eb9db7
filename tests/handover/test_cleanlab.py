import numpy as np
import pytest

import sarb
from sarb.errors import DataError
from sarb.handover.cleanlab import binary_problems

LABELS = sarb.LabelMatrix([[1, 0], [-1, 1], [0, -1]], ["cat", "dog"], ["a.jpg", "b.jpg", "c.jpg"])
SCORES = sarb.Scores([[2.0, 0.0], [-1.0, 3.0], [0.5, -2.0]], ["cat", "dog"], LABELS.paths)


def test_unknown_labels_are_left_out_not_made_absent():
    problems = SCORES.to_cleanlab(LABELS)
    assert list(problems) == ["cat", "dog"]
    assert problems["cat"].rows.tolist() == [0, 1] and problems["cat"].labels.tolist() == [1, 0]
    assert problems["dog"].rows.tolist() == [1, 2] and problems["dog"].labels.tolist() == [1, 0]
    for column, problem in enumerate(problems.values()):
        assert problem.pred_probs[:, 1].tolist() == SCORES.probabilities[problem.rows, column].tolist()
        assert np.allclose(problem.pred_probs.sum(axis=1), 1)


def test_a_category_of_which_nothing_is_known_is_empty():
    problem = binary_problems(np.zeros((4, 1), np.int8), np.full((4, 1), 0.3), ["cat"])["cat"]
    assert problem.labels.shape == (0,) and problem.pred_probs.shape == (0, 2)


def test_scores_of_other_images_are_refused():
    with pytest.raises(DataError, match="same images"):
        SCORES.take([0, 1]).to_cleanlab(LABELS)


def test_the_multi_label_form_needs_every_label():
    whole = sarb.LabelMatrix([[1, -1], [1, 1], [-1, -1]], ["cat", "dog"])
    assert whole.to_cleanlab() == [[0], [0, 1], []]
    with pytest.raises(DataError, match=r"2 labels are unknown.*scores\.to_cleanlab"):
        LABELS.to_cleanlab()


def test_filled_labels_judge_only_what_was_given():
    filled = sarb.complete(SCORES, LABELS)
    assert (filled.labels.values != 0).all()
    for category, problem in filled.to_cleanlab().items():
        assert problem.labels.tolist() == SCORES.to_cleanlab(LABELS)[category].labels.tolist()
