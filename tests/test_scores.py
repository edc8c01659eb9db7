"""Scores: probabilities, tables, files."""

import csv
import io
import warnings

import numpy as np
import pytest

from sarb.errors import SarbError
from sarb.scores import Scores


@pytest.fixture
def scores():
    return Scores(
        [[0.0, 2.0, -2.0], [-3.0, -1.0, 5.0]], ["cat", "dog, big", 'a "bird"'], ["x/a.jpg", "b.jpg"]
    )


def rows(text):
    return list(csv.reader(io.StringIO(text)))


def test_probabilities_are_a_stable_sigmoid():
    logits = np.array([[-1e4, -700.0, -2.0, 0.0, 2.0, 700.0, 1e4]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = Scores(logits, list("abcdefg")).probabilities[0]
    assert values[2:5] == pytest.approx([0.11920292, 0.5, 0.88079708])
    assert values[0] == 0.0 and 0 < values[1] < 1e-300 and values[-1] == 1.0
    assert (values + values[::-1]) == pytest.approx(1.0)


def test_wide_csv_quotes_names_and_is_also_returned(scores, tmp_path):
    text = scores.to_csv(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == text
    header, first, second = rows(text)
    assert header == ["file_name", "cat", "dog, big", 'a "bird"']
    assert first == ["x/a.jpg", "0.5", "0.880797", "0.119203"]
    assert second[0] == "b.jpg" and [float(v) for v in second[1:]] == pytest.approx(
        scores.probabilities[1], abs=1e-6
    )


def test_long_csv_by_top_k_and_threshold(scores):
    header, *body = rows(scores.to_csv(top_k=1))
    assert header == ["file_name", "label", "probability"]
    assert [row[:2] for row in body] == [["x/a.jpg", "dog, big"], ["b.jpg", 'a "bird"']]
    assert [row[1] for row in rows(scores.to_csv(threshold=0.5))[1:]] == ["dog, big", "cat", 'a "bird"']
    assert [row[1] for row in rows(scores.to_csv(top_k=1, threshold=0.9))[1:]] == ['a "bird"']


def test_top_is_sorted_and_may_ask_for_more_than_there_are(scores):
    assert [name for name, _ in scores.top(9)[1]] == ['a "bird"', "dog, big", "cat"]
    with pytest.raises(SarbError, match="at least 1"):
        scores.top(0)
    with pytest.raises(SarbError, match="probability between 0 and 1"):
        scores.to_csv(threshold=50)


def test_save_and_load_without_pickle(scores, tmp_path):
    scores.save(tmp_path / "scores.npz")
    back = Scores.load(tmp_path / "scores.npz")
    assert back == scores and hash(back) == hash(scores) and back.logits.dtype == np.float32
    empty = Scores(np.zeros((0, 2)), ["a", "b"])
    empty.save(tmp_path / "empty.npz")
    assert Scores.load(tmp_path / "empty.npz") == empty
    assert empty.to_csv() == "file_name,a,b\n" and empty.top(1) == []


def test_take_len_repr_and_read_only(scores):
    assert len(scores) == 2 and repr(scores) == "Scores(2 images × 3 categories)"
    assert scores.take([1, 0]).paths == ("b.jpg", "x/a.jpg")
    assert scores.take(np.array([False, True])).logits.tolist() == [[-3.0, -1.0, 5.0]]
    assert scores != scores.take([1, 0]) and scores != "scores"
    with pytest.raises(ValueError, match="read-only"):
        scores.logits[0, 0] = 1
    mine = np.zeros((1, 1), np.float32)
    Scores(mine, ["a"])
    mine[0, 0] = 1  # the caller's own array stays writable


def test_wrong_shapes_are_clear_errors():
    with pytest.raises(SarbError, match="1 paths and 2 categories"):
        Scores([[1.0]], ["a", "b"], ["x"])
    with pytest.raises(SarbError, match="matrix"):
        Scores([1.0], ["a"])
    with pytest.raises(SarbError, match="duplicate category names: a"):
        Scores([[1.0, 2.0]], ["a", "a"])


def test_take_nothing_gives_no_rows():
    scores = Scores([[0.0, 1.0]], ["cat", "dog"])
    for nothing in ([], np.zeros(0, np.int64), np.zeros(1, np.bool_)):
        assert scores.take(nothing).shape == (0, 2)
