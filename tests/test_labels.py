"""LabelMatrix and Targets: encodings, hiding, files. The graph is in test_labels_graph.py."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from sarb import matrix
from sarb.errors import DataError, SarbError
from sarb.labels import (
    ENCODINGS,
    LabelMatrix,
    Targets,
    encoding_table,
    normalise_code,
    own_spelling,
    readings,
)


def random_labels(images, categories, seed, shares=(0.3, 0.4, 0.3)):
    """Random -1/0/+1 with the given shares of absent, unknown, present."""
    values = np.random.RandomState(seed).choice([-1, 0, 1], (images, categories), p=shares)
    return LabelMatrix(values, [f"c{number}" for number in range(categories)])


# hide


@pytest.mark.parametrize("known", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("seed", [0, 7])
def test_hide_keeps_exactly_the_entries_of_the_authors_draw(known, seed):
    labels = LabelMatrix(np.where(np.arange(60).reshape(12, 5) % 3, -1, 1), list("abcde"))
    draw = np.random.RandomState(seed).random_sample((12, 5))
    hidden = labels.hide(known, seed)
    for image in range(12):
        for category in range(5):
            expected = labels.values[image, category] if draw[image, category] < known else 0
            assert hidden.values[image, category] == expected
    assert hidden.categories == labels.categories and hidden.paths == labels.paths


@pytest.mark.parametrize("shape", [(0, 3), (7, 0), (1, 1), (1, 9), (13, 4), (50, 3)])
@pytest.mark.parametrize("block", [1, 5, 12, 1 << 16])
def test_hide_in_blocks_is_the_one_draw_over_the_whole_matrix_to_the_bit(shape, block, monkeypatch):
    labels = random_labels(*shape, seed=2)
    monkeypatch.setattr(matrix, "BLOCK", block)
    draw = np.random.RandomState(5).random_sample(shape)
    assert np.array_equal(labels.hide(0.4, 5).values, np.where(draw < 0.4, labels.values, 0))


def test_hide_needs_little_more_memory_than_its_result():
    labels = random_labels(200_000, 10, seed=0)
    tracemalloc.start()
    labels.hide(0.5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # 1 byte per entry, 16 for the path of an image, and a block of doubles and masks; all doubles would be
    # 16 MB
    assert peak < labels.values.nbytes + 16 * len(labels) + 2e6


def test_hidden_labels_are_read_only_as_all_labels_are():
    assert not random_labels(3, 2, 0).hide(0.5).values.flags.writeable


@pytest.mark.parametrize("place", [0, 3, 11])
def test_a_wrong_label_is_found_in_every_block(place, monkeypatch):
    monkeypatch.setattr(matrix, "BLOCK", 4)
    values = np.zeros(12, int)
    values[place] = 7
    with pytest.raises(DataError, match="got 7"):
        LabelMatrix(values.reshape(6, 2), ["a", "b"])


def test_hide_keeps_nothing_at_zero_and_everything_at_one():
    labels = LabelMatrix([[1, -1], [-1, 1]], ["a", "b"])
    assert not labels.hide(0).values.any()
    assert labels.hide(1) == labels


def test_hide_never_invents_a_label_and_leaves_the_original_alone():
    labels = random_labels(40, 6, seed=1)
    before = labels.values.copy()
    hidden = labels.hide(0.5, seed=3)
    assert (hidden.values[labels.values == 0] == 0).all()
    assert np.array_equal(labels.values, before)


@pytest.mark.parametrize(("known", "hint"), [(10, "did you mean 0.1?"), (50, "0.5?"), (-0.1, "got -0.1")])
def test_hide_refuses_what_is_no_share(known, hint):
    with pytest.raises(SarbError, match="between 0 and 1") as error:
        random_labels(2, 2, 0).hide(known)
    assert hint in str(error.value)


def test_hide_refuses_nan():
    with pytest.raises(SarbError, match="between 0 and 1"):
        random_labels(2, 2, 0).hide(float("nan"))


# encodings


@pytest.mark.parametrize(
    ("encoding", "codes", "values"),
    [
        ("signed", [["1", "-1", "0"]], [1, -1, 0]),
        ("signed", [[1, -1, 0]], [1, -1, 0]),
        ("signed", [["+1", "-1.0", " 0 "]], [1, -1, 0]),
        ("binary", [["1", "0", ""]], [1, -1, 0]),
        ("binary", [["1.0", "0.0", "  "]], [1, -1, 0]),
        ("binary", [[1.0, 0.0, np.nan]], [1, -1, 0]),
        ("binary", [["+1", "-0.0", ""]], [1, -1, 0]),
        ("minus_one_unknown", [["1", "0", "-1"]], [1, -1, 0]),
        ("minus_one_unknown", [[1.0, 0.0, -1.0]], [1, -1, 0]),
        ("words", [["present", "absent", "unknown"]], [1, -1, 0]),
        ("words", [["Yes", "NO", "?"]], [1, -1, 0]),
        ("words", [[" Present", "no", ""]], [1, -1, 0]),
    ],
)
def test_from_codes(encoding, codes, values):
    assert LabelMatrix.from_codes(codes, encoding, list("abc")).values.tolist() == [values]


@pytest.mark.parametrize(
    ("encoding", "codes"),
    [
        ("signed", ["1", "-1", "0"]),
        ("binary", ["1", "0", ""]),
        ("minus_one_unknown", ["1", "0", "-1"]),
        ("words", ["present", "absent", "unknown"]),
    ],
)
def test_to_codes(encoding, codes):
    assert LabelMatrix([[1, -1, 0]], list("abc")).to_codes(encoding).tolist() == [codes]


@pytest.mark.parametrize(
    ("encoding", "code"),
    [
        ("signed", ""),
        ("binary", "-1"),
        ("binary", "2"),
        ("minus_one_unknown", ""),
        ("words", "1"),
        ("signed", "yes"),
    ],
)
def test_a_code_outside_the_encoding_is_named(encoding, code):
    with pytest.raises(DataError) as error:
        LabelMatrix.from_codes([["0" if encoding != "words" else "no", code]], encoding, ["a", "b"])
    assert repr(code) in str(error.value) and f"'{encoding}'" in str(error.value)
    assert all(repr(key) in str(error.value) for key in ENCODINGS[encoding])


def test_an_unknown_encoding_gets_the_near_match():
    with pytest.raises(DataError, match="Did you mean 'binary'"):
        encoding_table("binray")
    with pytest.raises(DataError, match="minus_one_unknown"):
        LabelMatrix([[1]], ["a"]).to_codes("nothing like it")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (" +1.0 ", "1"),
        ("-1.00", "-1"),
        ("0.0", "0"),
        ("-0", "0"),
        ("1e0", "1"),
        ("", ""),
        ("  ", ""),
        ("YES", "yes"),
        ("2", "2"),
        ("0.5", "0.5"),
        ("inf", "inf"),
        ("nan", "nan"),
    ],
)
def test_normalise_code(text, code):
    assert normalise_code(text) == code


def test_readings_lists_each_possible_meaning_with_counts():
    assert readings({"1": 3, "0": 5}) == {
        "signed": {"present": 3, "absent": 0, "unknown": 5},
        "binary": {"present": 3, "absent": 5, "unknown": 0},
        "minus_one_unknown": {"present": 3, "absent": 5, "unknown": 0},
    }
    assert readings({"1": 2, "0": 1, "-1": 4}) == {
        "signed": {"present": 2, "absent": 4, "unknown": 1},
        "minus_one_unknown": {"present": 2, "absent": 1, "unknown": 4},
    }
    assert list(readings({"1": 1, "": 1})) == ["binary"]
    assert readings({"yes": 1, "no": 2, "present": 1}) == {"words": {"present": 2, "absent": 2, "unknown": 0}}
    assert readings({"7": 1}) == {}


@given(arrays(np.int8, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.integers(-1, 1)))
def test_codes_there_and_back_are_the_same_labels(values):
    labels = LabelMatrix(values, [f"c{number}" for number in range(values.shape[1])])
    for encoding in ENCODINGS:
        assert LabelMatrix.from_codes(labels.to_codes(encoding), encoding, labels.categories) == labels


# construction


def test_values_are_stored_as_read_only_int8_and_the_callers_array_stays_his():
    mine = np.array([[1, 0], [-1, 1]], np.int8)
    labels = LabelMatrix(mine, ["a", "b"])
    assert labels.values.dtype == np.int8
    with pytest.raises(ValueError, match="read-only"):
        labels.values[0, 0] = 0
    mine[0, 0] = 0
    assert labels.values[0, 0] == 1
    with pytest.raises(AttributeError):
        labels.values = mine


@pytest.mark.parametrize(
    ("values", "categories", "paths", "message"),
    [
        ([1, 0], ["a", "b"], None, r"must be a matrix.*\(2,\)"),
        ([[1, 2]], ["a", "b"], None, "got 2"),
        ([[1, 0.5]], ["a", "b"], None, r"got 0\.5"),
        ([[1, np.nan]], ["a", "b"], None, "got nan"),
        ([[1, 0]], ["a"], None, r"\(1, 2\).*1 categories"),
        ([[1, 0]], ["a", "b"], ["x", "y"], r"\(1, 2\).*2 paths"),
        ([[1, 0, 1]], ["a", "b", "a"], None, "duplicate category names: a"),
    ],
)
def test_wrong_matrices_are_refused(values, categories, paths, message):
    with pytest.raises(DataError, match=message):
        LabelMatrix(values, categories, paths)


def test_plain_facts():
    labels = LabelMatrix([[1, 0, -1], [1, -1, -1]], ["a", "b", "c"], ["x.jpg", "y.jpg"])
    assert len(labels) == 2 and labels.shape == (2, 3)
    assert labels.known.tolist() == [[True, False, True], [True, True, True]]
    assert labels.known_share == pytest.approx(5 / 6)
    assert labels.positives.tolist() == [2, 0, 0] and labels.negatives.tolist() == [0, 1, 2]
    assert repr(labels) == "LabelMatrix(2 images × 3 categories, 83.3 % known)"
    assert LabelMatrix([[1]], ["a"]).paths == ("0",)
    assert LabelMatrix(np.zeros((0, 2)), ["a", "b"]).known_share == 0


def test_equality_and_hash_look_at_values_categories_and_paths():
    labels = LabelMatrix([[1, 0]], ["a", "b"], ["x"])
    assert labels == LabelMatrix([[1, 0]], ["a", "b"], ["x"])
    assert hash(labels) == hash(LabelMatrix([[1, 0]], ["a", "b"], ["x"]))
    assert labels != LabelMatrix([[1, 1]], ["a", "b"], ["x"])
    assert labels != LabelMatrix([[1, 0]], ["a", "c"], ["x"])
    assert labels != LabelMatrix([[1, 0]], ["a", "b"], ["y"])
    assert labels != "labels"


# take, fingerprint, files


def test_take_by_position_and_by_mask():
    labels = LabelMatrix([[1], [0], [-1]], ["a"], ["x", "y", "z"])
    picked = labels.take([2, 0, 2])
    assert picked.values.ravel().tolist() == [-1, 1, -1] and picked.paths == ("z", "x", "z")
    masked = labels.take(np.array([True, False, True]))
    assert masked.values.ravel().tolist() == [1, -1] and masked.paths == ("x", "z")


@pytest.mark.parametrize("nothing", [[], np.zeros(0, np.int64), np.zeros(3, bool)])
def test_take_nothing(nothing):
    assert LabelMatrix([[1], [0], [-1]], ["a"]).take(nothing).shape == (0, 1)


def test_fingerprint_changes_with_values_categories_and_paths():
    prints = {
        LabelMatrix([[1, 0]], ["a", "b"], ["x"]).fingerprint(),
        LabelMatrix([[1, -1]], ["a", "b"], ["x"]).fingerprint(),
        LabelMatrix([[1, 0]], ["a", "c"], ["x"]).fingerprint(),
        LabelMatrix([[1, 0]], ["a", "b"], ["y"]).fingerprint(),
        LabelMatrix([[1], [0]], ["a"], ["b", "x"]).fingerprint(),
    }
    assert len(prints) == 5
    assert LabelMatrix([[1, 0]], ["a", "b"], ["x"]).fingerprint() in prints


def test_save_and_load(tmp_path):
    labels = LabelMatrix([[1, 0, -1], [0, 1, 1]], ["katze", "hot dog", "höhle, „tief“"], ["a/ü.jpg", "b.jpg"])
    labels.save(tmp_path / "labels.npz")
    assert LabelMatrix.load(tmp_path / "labels.npz") == labels
    assert [file.name for file in tmp_path.iterdir()] == ["labels.npz"]
    with np.load(tmp_path / "labels.npz", allow_pickle=False) as stored:
        assert set(stored) == {"values", "categories", "paths"}


def test_save_and_load_without_images(tmp_path):
    labels = LabelMatrix(np.zeros((0, 2)), ["a", "b"], [])
    labels.save(tmp_path / "labels.npz")
    assert LabelMatrix.load(tmp_path / "labels.npz") == labels


# Targets


def test_targets_of_each_label():
    import torch

    value, weight = Targets.of(torch.tensor([[1, -1, 0]]))
    assert value.tolist() == [[1, 0, 0]] and weight.tolist() == [[1, 1, 0]]


@pytest.mark.parametrize("kind", ["int8", "int64", "float32", "float64", "float16"])
def test_targets_keep_a_floating_type_and_make_integers_float32(kind):
    import torch

    labels = torch.tensor([[1, -1, 0]]).to(getattr(torch, kind))
    targets = Targets.of(labels)
    expected = labels.dtype if labels.is_floating_point() else torch.float32
    assert targets.value.dtype == targets.weight.dtype == expected
    assert targets.value.tolist() == [[1, 0, 0]] and targets.weight.tolist() == [[1, 1, 0]]


def test_targets_in_a_chosen_type():
    import torch

    targets = Targets.of(torch.tensor([[1, -1, 0]], dtype=torch.int8), torch.float64)
    assert targets.value.dtype == targets.weight.dtype == torch.float64


def test_targets_are_read_from_tensors_matrices_and_arrays():
    import torch

    rows = [[1, 0], [-1, 1]]
    for labels in (torch.tensor(rows), LabelMatrix(rows, ["a", "b"]), np.array(rows), rows):
        targets = Targets.of(labels)
        assert targets.value.tolist() == [[1, 0], [0, 1]]
        assert targets.weight.tolist() == [[1, 0], [1, 1]]
        assert targets.value.dtype == torch.float32


@pytest.mark.parametrize(
    ("encoding", "times", "spelled"),
    [
        ("words", {"Yes": 3, "yes": 1}, ("Yes", "No", "?")),
        ("words", {"NO": 1}, ("YES", "NO", "?")),
        ("words", {"True": 2, "": 1}, ("True", "False", "")),
        ("binary", {"1.0": 1}, ("1.0", "0.0", "")),
        ("minus_one_unknown", {"0.0": 1}, ("1.0", "0.0", "-1.0")),
        ("signed", {"1": 1}, ("1", "-1", "0")),
        ("Ja/Nein", {}, ("Ja", "Nein", "")),
        ("ja/nein/k.A.", {"Ja": 1}, ("Ja", "Nein", "k.A.")),
        ("x/", {"x": 1}, ("x", "", "?")),
    ],
)
def test_a_code_that_does_not_occur_goes_with_the_others(encoding, times, spelled):
    assert tuple(own_spelling(encoding, times).values()) == spelled


def test_own_words_as_an_encoding():
    assert encoding_table("Ja/Nein") == {"ja": 1, "nein": -1, "": 0, "?": 0}
    assert encoding_table("x/") == {"x": 1, "": -1, "?": 0}
    assert encoding_table("a/b/n/a") == {"a": 1, "b": -1, "n/a": 0, "": 0, "?": 0}
    for wrong in ("/Nein", "Ja/ja", "Ja/Nein/ nein "):
        with pytest.raises(DataError, match="expected different words"):
            encoding_table(wrong)
    with pytest.raises(DataError, match=r"unknown encoding 'JaNein'.*PRESENT/ABSENT"):
        encoding_table("JaNein")
