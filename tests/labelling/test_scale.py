import numpy as np
import pytest

import sarb
from sarb.errors import DataError
from sarb.labelling.scale import on_scale
from tests.labelling.made_scores import make


def test_on_the_scale_of_the_final_model():
    scores, labels, _, _ = make(200, [1.0, 1.0, 1.0], [0.0, 0.0, 0.0], known=0.5)
    labels = sarb.LabelMatrix(np.where(np.arange(3) == 2, 1, labels.values), labels.categories, labels.paths)
    final = sarb.Scores(3 * scores.logits - 2, scores.categories, scores.paths)
    found = on_scale(scores, final, labels).logits
    np.testing.assert_allclose(found[:, :2], final.logits[:, :2], atol=1e-4)
    assert np.array_equal(
        found[:, 2], scores.logits[:, 2]
    )  # every label is known, so there is nothing to compare
    with pytest.raises(DataError, match="different images or categories"):
        on_scale(scores, final.take([0, 1]), labels)
