"""Metrics against scikit-learn, against slow loops, and against numbers worked out by hand."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, precision_recall_curve

from sarb.errors import SarbError
from sarb.labels import LabelMatrix
from sarb.metrics import average_precision, evaluate, measures, per_category, precision_recall


def random_case(seed):
    """A masked matrix; every second one has heavily tied scores, some columns lack positives or are all
    unknown.
    """
    rng = np.random.default_rng(seed)
    images, categories = int(rng.integers(1, 60)), int(rng.integers(1, 9))
    scores = rng.normal(size=(images, categories)).astype(np.float32)
    if seed % 2:
        scores = np.round(scores * rng.choice([0.3, 1.0, 2.0])) / 2
    labels = rng.choice([-1, 0, 1], size=scores.shape, p=rng.dirichlet([2, 2, 1]))
    if seed % 5 == 0:
        labels[:, 0] = rng.choice([-1, 0], size=images)
    if seed % 7 == 0:
        labels[:, -1] = 0
    return scores, labels


def slow_interpolated(scores, labels):
    """All-point interpolated AP: at each rise of the recall, the best precision at that recall or beyond."""
    pairs = [(s, y) for s, y in zip(scores.tolist(), labels.tolist(), strict=True) if y != 0]
    positives = sum(y == 1 for _, y in pairs)
    if positives == 0:
        return math.nan
    points = []
    for cut in sorted({s for s, _ in pairs}, reverse=True):
        chosen = [y for s, y in pairs if s >= cut]
        points.append((chosen.count(1) / positives, chosen.count(1) / len(chosen)))
    area, before = 0.0, 0.0
    for recall, _ in points:
        area += (recall - before) * max(p for r, p in points if r >= recall)
        before = recall
    return area


def slow_decisions(scores, labels, rule, threshold=0.0):
    """OP OR OF1 CP CR CF1 by counting entry after entry."""
    images, categories = scores.shape
    right, claimed, positive = [0] * categories, [0] * categories, [0] * categories
    for i in range(images):
        ranking = sorted(range(categories), key=lambda c: (-scores[i, c], c))
        for c in range(categories):
            above = scores[i, c] >= threshold
            in_top = c in ranking[:3]
            said = {"": above, "_top3": above and in_top, "_top3_raw": in_top}[rule]
            if labels[i, c] == 0:
                continue
            claimed[c] += said
            positive[c] += labels[i, c] == 1
            right[c] += said and labels[i, c] == 1
    op = 100 * sum(right) / sum(claimed) if sum(claimed) else 0.0
    or_ = 100 * sum(right) / sum(positive) if sum(positive) else 0.0
    precisions = [100 * right[c] / claimed[c] if claimed[c] else 0.0 for c in range(categories)]
    recalls = [100 * right[c] / positive[c] for c in range(categories) if positive[c]]
    cp = sum(precisions) / len(precisions)
    cr = sum(recalls) / len(recalls) if recalls else 0.0
    of1 = 2 * op * or_ / (op + or_) if op + or_ else 0.0
    cf1 = 2 * cp * cr / (cp + cr) if cp + cr else 0.0
    names = [name + rule for name in ("OP", "OR", "OF1", "CP", "CR", "CF1")]
    return dict(zip(names, (op, or_, of1, cp, cr, cf1), strict=True))


@pytest.mark.parametrize("block", range(10))
def test_average_precision_equals_scikit_learn_and_the_slow_loop(block):
    for seed in range(20 * block, 20 * block + 20):
        scores, labels = random_case(seed)
        plain, envelope = (
            average_precision(scores, labels),
            average_precision(scores, labels, interpolated=True),
        )
        for c in range(labels.shape[1]):
            known = labels[:, c] != 0
            if not (labels[:, c] == 1).any():
                assert math.isnan(plain[c]) and math.isnan(envelope[c])
                continue
            expected = average_precision_score(labels[known, c] == 1, scores[known, c])
            assert plain[c] == pytest.approx(expected, abs=1e-9)
            assert envelope[c] == pytest.approx(slow_interpolated(scores[:, c], labels[:, c]), abs=1e-9)


def literal_average_precisions(scores, labels):
    """Plain and interpolated AP (2, C) over whole arrays, from one stable sort: the formula of the
    docstring.
    """
    result = np.full((2, labels.shape[1]), np.nan)
    for c in np.flatnonzero((labels == 1).any(axis=0)):
        known = labels[:, c] != 0
        score, present = scores[known, c].astype(np.float64), labels[known, c] == 1
        cuts = np.unique(score)
        hits = np.array([(present & (score >= cut)).sum() for cut in cuts])
        precision = hits / np.array([(score >= cut).sum() for cut in cuts])
        rise = (hits - np.append(hits[1:], 0)) / present.sum()
        result[:, c] = (rise * precision).sum(), (rise * np.maximum.accumulate(precision)).sum()
    return result


@settings(max_examples=150, deadline=None)
@given(
    images=st.integers(1, 300),
    categories=st.integers(1, 40),
    kind=st.sampled_from([np.float32, np.float64]),
    steps=st.sampled_from([0, 1, 3, 50]),
    share=st.sampled_from([0.02, 0.2, 0.26, 0.7, 1.0]),
    known=st.sampled_from([0.1, 0.6, 1.0]),
    rows=st.sampled_from([1, 7, 4096]),
    seed=st.integers(0, 2**32 - 1),
)
def test_average_precision_equals_the_formula_on_random_shapes(
    images, categories, kind, steps, share, known, rows, seed
):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(images, categories)).astype(kind)
    scores = (
        np.round(scores * steps) / kind(steps) if steps else scores
    )  # steps=1 gives 0.0 and -0.0, which are equal
    labels = np.where(rng.random(scores.shape) < share, 1, -1) * (rng.random(scores.shape) < known)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measures, "ROWS", rows)
        plain, envelope = (
            average_precision(scores, labels),
            average_precision(scores, labels, interpolated=True),
        )
    assert np.allclose(
        [plain, envelope], literal_average_precisions(scores, labels), rtol=0, atol=1e-12, equal_nan=True
    )


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("share", [0.03, 0.5])
def test_average_precision_equals_scikit_learn_to_the_last_digits_on_many_rows(kind, share):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(30_000, 3)).astype(kind)
    scores[:, 1] = np.round(scores[:, 1] * 100)
    labels = np.where(rng.random(scores.shape) < share, 1, -1)
    expected = [average_precision_score(labels[:, c] == 1, scores[:, c]) for c in range(3)]
    assert average_precision(scores, labels) == pytest.approx(expected, rel=0, abs=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
def test_any_kind_of_number_and_layout_is_read_alike_and_left_alone(order):
    scores, labels = random_case(1)
    whole = np.round(4 * scores)
    expected = evaluate(whole, labels)
    for kind in (np.float16, np.float32, np.float64, np.int32):
        given_scores, given_labels = (
            np.asarray(whole, kind, order=order),
            np.asarray(labels, np.float32, order=order),
        )
        copies = given_scores.copy(), given_labels.copy()
        assert evaluate(given_scores, given_labels) == pytest.approx(expected, rel=1e-12, nan_ok=True)
        assert np.array_equal(given_scores, copies[0]) and np.array_equal(given_labels, copies[1])


@pytest.mark.parametrize("rows", [1, 3, 4096])
def test_blocks_of_rows_do_not_change_a_number(monkeypatch, rows):
    scores, labels = random_case(8)
    expected = evaluate(scores, labels, 0.25), per_category(scores, labels)
    monkeypatch.setattr(measures, "ROWS", rows)
    monkeypatch.setattr(measures, "COLUMN_BUDGET", 2 * len(scores))
    found = evaluate(scores, labels, 0.25), per_category(scores, labels)
    np.testing.assert_equal(found, expected)


def test_a_threshold_is_compared_in_double_precision():
    scores = np.array([[np.float32(0.1)]], np.float32)  # 0.100000001490…
    assert evaluate(scores, [[1]], threshold=0.1000000014)["OR"] == 100.0
    assert evaluate(scores, [[1]], threshold=0.1000000016)["OR"] == 0.0


@pytest.mark.parametrize("seed", range(200))
def test_decisions_equal_the_slow_loop(seed):
    scores, labels = random_case(seed)
    result = evaluate(scores, labels)
    for rule in ("", "_top3", "_top3_raw"):
        for name, value in slow_decisions(scores, labels, rule).items():
            assert result[name] == pytest.approx(value, abs=1e-9), name


def test_average_precision_by_hand():
    # ranked: + - + -  ->  precision at the positives 1/1 and 2/3, mean 5/6
    assert average_precision([[4.0], [3.0], [2.0], [1.0]], [[1], [-1], [1], [-1]])[0] == pytest.approx(5 / 6)
    # ranked: - + +  ->  1/2 and 2/3, mean 7/12; the envelope lifts the first to 2/3
    scores, labels = [[3.0], [2.0], [1.0]], [[-1], [1], [1]]
    assert average_precision(scores, labels)[0] == pytest.approx(7 / 12)
    assert average_precision(scores, labels, interpolated=True)[0] == pytest.approx(2 / 3)


def test_an_unknown_entry_is_never_scored_whatever_its_score():
    labels = [[1, -1], [0, 0], [-1, 1], [1, -1]]
    for wild in (-100.0, 0.0, 2.0, 100.0):
        scores = np.array([[3.0, 1.0], [wild, -wild], [2.0, 4.0], [1.0, 0.5]])
        assert average_precision(scores, labels).tolist() == pytest.approx([5 / 6, 1.0])
        without = np.delete(scores, 1, axis=0), np.delete(np.array(labels), 1, axis=0)
        full, reduced = evaluate(scores, labels), evaluate(*without)
        assert {k: v for k, v in full.items() if k != "images"} == {
            k: v for k, v in reduced.items() if k != "images"
        }


def test_ties_do_not_depend_on_the_order_of_the_file():
    labels = np.array([[1], [-1], [-1], [1]])
    constant = np.zeros((4, 1))
    assert average_precision(constant, labels)[0] == average_precision(constant, labels[::-1])[0] == 0.5


def test_decisions_by_hand():
    # category a: said for images 0, 1 (one right of two, two positives); b: never said (one positive); c: no
    # positive
    scores = np.array([[2.0, -1.0, 1.0], [1.0, -2.0, -1.0], [-1.0, -3.0, -2.0]])
    labels = np.array([[1, 1, -1], [-1, -1, 0], [1, 0, -1]])
    result = evaluate(scores, labels)
    assert result["OP"] == pytest.approx(100 / 3)  # 1 right of a, a, c
    assert result["OR"] == pytest.approx(100 / 3)  # 1 of a, a, b
    assert result["OF1"] == pytest.approx(100 / 3)
    assert result["CP"] == pytest.approx((50 + 0 + 0) / 3)
    assert result["CR"] == pytest.approx((50 + 0) / 2)  # c has no known positive
    assert result["CF1"] == pytest.approx(20.0)
    assert (result["images"], result["categories"], result["categories_without_positive"]) == (3, 3, 1)
    assert result["known_entries"] == 7
    # a: ranked + - +, AP 5/6; b: ranked + - (unknown last), AP 1
    assert result["mAP"] == pytest.approx(100 * (5 / 6 + 1) / 2)


def test_top3_is_taken_over_all_categories_before_unknown_ones_are_left_out():
    scores, labels = np.array([[5.0, 4.0, 3.0, 2.0]]), np.array([[0, 1, -1, 1]])
    result = evaluate(scores, labels)
    assert (result["OP"], result["OR"]) == (pytest.approx(200 / 3), 100.0)
    assert (result["OP_top3"], result["OR_top3"]) == (50.0, 50.0)
    raw = evaluate(scores - 10, labels)
    assert (raw["OP_top3"], raw["OP_top3_raw"], raw["OR_top3_raw"]) == (0.0, 50.0, 50.0)


def test_threshold_per_category():
    scores, labels = np.array([[0.5, 0.5], [1.5, 1.5]]), np.array([[1, 1], [1, 1]])
    assert evaluate(scores, labels, threshold=[0.0, 1.0])["OR"] == 75.0
    assert evaluate(scores, labels, threshold=1.0)["OR"] == 50.0
    assert evaluate(scores, labels, threshold=0.5)["OR"] == 100.0  # at the threshold counts as said
    assert [row["recall"] for row in per_category(scores, labels, threshold=[0.0, 1.0])] == [100.0, 50.0]
    with pytest.raises(SarbError, match="one per category"):
        evaluate(scores, labels, threshold=[0.0, 1.0, 2.0])


def test_precision_recall_equals_scikit_learn():
    for seed in range(40):
        scores, labels = random_case(seed)
        known = labels[:, 0] != 0
        curve = precision_recall(scores[:, 0], labels[:, 0])
        if not (labels[:, 0] == 1).any():
            assert not curve.recall.any()
            continue
        precision, recall, cuts = precision_recall_curve(labels[known, 0] == 1, scores[known, 0])
        assert curve.precision[::-1] == pytest.approx(precision[:-1], abs=1e-12)
        assert curve.recall[::-1] == pytest.approx(recall[:-1], abs=1e-12)
        assert curve.threshold[::-1] == pytest.approx(cuts)
    assert all(len(part) == 0 for part in precision_recall([1.0], [0]))


def test_per_category_table():
    scores = np.array([[2.0, -1.0], [1.0, -2.0], [-1.0, -3.0], [3.0, 1.0]])
    labels = LabelMatrix([[1, -1], [-1, -1], [1, 0], [0, -1]], ["cat", "dog"])
    cat, dog = per_category(scores, labels)
    assert cat["category"] == "cat" and cat["AP"] == pytest.approx(100 * (1 + 2 / 3) / 2)
    assert (cat["precision"], cat["recall"], cat["F1"]) == (50.0, 50.0, 50.0)
    assert (cat["positives"], cat["negatives"], cat["unknown"]) == (2, 1, 1)
    assert (
        math.isnan(dog["AP"])
        and math.isnan(dog["recall"])
        and math.isnan(dog["F1"])
        and dog["precision"] == 0.0
    )
    with pytest.raises(SarbError, match="1 category names for 2"):
        per_category(scores, labels, ["cat"])


@pytest.mark.parametrize("shape", [(0, 1), (0, 3), (1, 1), (4, 1), (4, 3), (3, 0)])
def test_nothing_known_gives_defined_numbers_without_warnings(shape):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = evaluate(np.ones(shape), np.zeros(shape, int))
        assert np.isnan(average_precision(np.ones(shape), np.zeros(shape, int))).all()
        assert len(per_category(np.ones(shape), np.zeros(shape, int))) == shape[1]
    assert math.isnan(result["mAP"]) and math.isnan(result["mAP_interpolated"])
    assert all(
        result[name] == 0 for name in ("OP", "OR", "OF1", "CP", "CR", "CF1", "CF1_top3", "CF1_top3_raw")
    )
    assert result["categories_without_positive"] == shape[1]


def test_wrong_input_is_one_clear_error():
    with pytest.raises(SarbError, match=r"scores \(2, 3\) and labels \(3, 2\)"):
        evaluate(np.zeros((2, 3)), np.zeros((3, 2)))
    with pytest.raises(SarbError, match="same shape"):
        average_precision([1.0, 2.0], [1, -1])
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(SarbError, match="image 1, category 0"):
            average_precision([[1.0], [bad]], [[1], [-1]])
    with pytest.raises(SarbError, match="got 2"):
        evaluate([[1.0]], [[2]])


def test_a_label_matrix_and_its_array_are_read_alike():
    scores, labels = random_case(3)
    matrix = LabelMatrix(labels, [str(c) for c in range(labels.shape[1])])
    assert evaluate(scores, matrix) == evaluate(scores, labels)
