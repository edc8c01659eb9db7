import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import sarb
from sarb.errors import ConfigError, DataError
from sarb.labelling.calibration import calibrate
from sarb.labelling.completion import complete
from sarb.labelling.thresholds import for_precision
from sarb.labels import LabelMatrix
from sarb.scores import Scores
from tests.labelling.made_scores import make


def by_hand():
    logits = np.log(
        np.array([[0.95, 0.6, 0.05], [0.3, 0.5, 0.02]])
        / (1 - np.array([[0.95, 0.6, 0.05], [0.3, 0.5, 0.02]]))
    )
    labels = LabelMatrix([[0, 0, 1], [-1, 0, 0]], ["cat", "dog", "car"], ["a.jpg", "b.jpg"])
    return Scores(logits, labels.categories, labels.paths), labels


def test_fills_every_gap_by_default():
    filled = complete(*by_hand())
    assert filled.labels.values.tolist() == [[1, 1, 1], [-1, 1, -1]]
    np.testing.assert_allclose(filled.confidence, [[0.95, 0.6, 1], [1, 0.5, 0.98]], atol=1e-6)
    assert [(c.file_name, c.label) for c in filled.conflicts] == [("a.jpg", "car")]


def test_leaves_alone_what_is_not_sure():
    filled = complete(*by_hand(), min_confidence=0.9)
    assert filled.labels.values.tolist() == [[1, 0, 1], [-1, 0, -1]]
    assert filled.confidence[0, 1] == pytest.approx(0.6)
    assert filled.summary()["left_unknown"] == 2
    assert complete(*by_hand(), min_confidence=0).labels.known.all()


def test_summary_states_the_expected_precision():
    found = complete(*by_hand()).summary()
    assert (found["given"], found["filled_present"], found["filled_absent"], found["conflicts"]) == (
        2,
        3,
        1,
        1,
    )
    assert found["expected_precision_present"] == pytest.approx((0.95 + 0.6 + 0.5) / 3)
    assert found["expected_precision_absent"] == pytest.approx(0.98)
    assert found["strong_conflicts"] == 0
    said = str(complete(*by_hand()))
    assert said.endswith("; 0 given labels look doubtful, another 1 only slightly")
    assert "3 filled as present (expected precision 0.683)" in said and "0 left unknown" in said


@settings(max_examples=60, deadline=None)
@given(
    arrays(np.float32, (6, 3), elements=st.floats(-12, 12, width=32)),
    arrays(np.int8, (6, 3), elements=st.integers(-1, 1)),
    st.one_of(st.none(), st.floats(0, 1)),
    st.booleans(),
)
def test_known_labels_are_never_changed(logits, values, share, precise):
    scores, labels = Scores(logits, list("abc")), LabelMatrix(values, list("abc"))
    name = "min_precision" if precise else "min_confidence"
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        filled = complete(scores, labels, **{name: share})
    assert np.array_equal(filled.labels.values[labels.known], values[labels.known])
    assert (filled.confidence[labels.known] == 1).all()
    assert not (filled.present & filled.absent).any()
    for conflict in filled.conflicts:
        assert values[int(conflict.file_name), "abc".index(conflict.label)] == conflict.given


def test_precision_is_reached_on_the_withheld_truth():
    scores, labels, truth, _ = make(4_000, np.full(25, 1.2), np.linspace(-3, -1.5, 25), known=0.1)
    calibration = calibrate(scores, labels)
    filled = complete(scores, labels, calibration, min_precision=0.8)
    right = (truth.values > 0)[filled.present]
    assert 0.76 < right.mean() < 0.9 and filled.present.sum() > 200
    assert filled.summary()["expected_precision_present"] == pytest.approx(right.mean(), abs=0.05)
    assert (filled.calibrated[filled.absent] <= 0.2 + 1e-9).all()
    assert (filled.labels.values == 0).any()


def test_thresholds_of_the_calibration_decide():
    scores, labels, _, _ = make(400, [0.5, 1.0], [-2.0, 0.0], known=0.4)
    calibration = calibrate(scores, labels)
    filled = complete(scores, labels, calibration)
    expected = np.where(calibration(scores) >= calibration.thresholds, 1, -1)
    assert np.array_equal(filled.labels.values, np.where(labels.known, labels.values, expected))


def test_precision_without_held_out_labels_warns():
    with pytest.warns(UserWarning, match="sarb calibrate"):
        filled = complete(*by_hand(), min_precision=0.9)
    assert filled.labels.values.tolist() == [[1, 0, 1], [-1, 0, -1]]


def test_conflicts_come_from_out_of_fold_scores():
    scores, labels = by_hand()
    other = Scores(-scores.logits, scores.categories, scores.paths)
    found = {(c.file_name, c.label) for c in complete(scores, labels, out_of_fold=other).conflicts}
    assert found == {("b.jpg", "cat")}
    assert np.array_equal(
        complete(scores, labels, out_of_fold=other).labels.values, complete(scores, labels).labels.values
    )


def test_refusals():
    scores, labels = by_hand()
    with pytest.raises(ConfigError, match="one of"):
        complete(scores, labels, min_confidence=0.9, min_precision=0.9)
    with pytest.raises(ConfigError, match=r"did you mean 0\.9"):
        complete(scores, labels, min_confidence=90)
    with pytest.raises(DataError, match="same images"):
        complete(scores, LabelMatrix(labels.values, labels.categories, ["x", "y"]))


def test_long_table(tmp_path):
    filled = sarb.complete(*by_hand(), min_confidence=0.9)
    text = filled.to_csv(tmp_path / "filled.csv")
    assert (tmp_path / "filled.csv").read_text(encoding="utf-8") == text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 6
    assert list(rows[0]) == [
        "file_name",
        "label",
        "given",
        "probability",
        "calibrated",
        "filled",
        "threshold",
        "source",
    ]
    assert [row["source"] for row in rows] == ["machine", "none", "given", "given", "none", "machine"]
    assert [row["filled"] for row in rows] == ["present", "unknown", "present", "absent", "unknown", "absent"]


def test_only_strong_conflicts_are_called_doubtful():
    p = np.full((30, 1), 0.9)
    p[:3, 0] = 0.001, 0.4, 0.45
    scores = Scores(np.log(p / (1 - p)), ["cat"])
    filled = complete(scores, LabelMatrix(np.ones((30, 1)), ["cat"]))
    assert [c.file_name for c in filled.conflicts] == ["0", "1", "2"]
    assert (filled.summary()["conflicts"], filled.summary()["strong_conflicts"]) == (3, 1)
    assert str(filled).endswith("; 1 given label looks doubtful, another 2 only slightly")


def test_the_expected_precision_reaches_the_minimum_in_every_category():
    """Held-out labels that were right by luck are no reason to fill a group that is expected to miss the target."""
    scores, labels, _, _ = make(400, [1.0, 1.0, 1.0], [-1.0, -1.5, -0.5], known=0.3)
    counts = np.zeros((2, 3, 200), np.int64)
    counts[0, :, 100:] = 10  # all of them present
    found = replace(sarb.calibrate(scores, labels), counts=counts)
    filled = sarb.complete(scores, labels, found, min_precision=0.9)
    groups = [one for one in filled.backing if one.kind == "present" and one.filled]
    assert groups and all(one.expected >= 0.9 for one in groups)
    lower = for_precision(counts, 0.9)
    rest = np.where(labels.known, np.nan, found(scores))
    alone = [np.nanmean(np.where(rest[:, n] >= lower[n], rest[:, n], np.nan)) for n in range(3)]
    assert min(alone) < 0.9  # what the held-out labels alone would have filled


def test_each_label_alone_reaches_the_precision():
    """Then images may be filled in parts, with the result of all together."""
    scores, labels, _, _ = make(200, [1.0, 1.0, 1.0], [0.5, -1.0, 0.0], known=0.5)
    calibration = calibrate(scores, labels)
    whole = complete(scores, labels, calibration, min_precision=0.8, each=True)
    assert (whole.thresholds >= 0.8).all() and whole.present.any()
    assert (whole.calibrated[whole.present] >= 0.8).all()
    for rows in (slice(0, 50), slice(50, 200)):
        part = complete(
            Scores(scores.logits[rows], scores.categories, scores.paths[rows]),
            LabelMatrix(labels.values[rows], labels.categories, labels.paths[rows]),
            calibration,
            min_precision=0.8,
            each=True,
        )
        assert (part.labels.values == whole.labels.values[rows]).all()
        assert (part.thresholds == whole.thresholds).all()
