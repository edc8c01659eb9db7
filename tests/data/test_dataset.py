"""Dataset and Data: what every reader returns."""

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sarb.data.dataset import Data, Dataset
from sarb.errors import SarbError
from sarb.labels import LabelMatrix


@pytest.fixture
def dataset(tmp_path):
    """Ten one-colour images; image n has grey level 20 n."""
    for number in range(10):
        Image.new("RGB", (4, 3), (20 * number,) * 3).save(tmp_path / f"{number}.png")
    values = np.where(np.arange(30).reshape(10, 3) % 2, 1, -1)
    return Dataset(
        LabelMatrix(values, list("abc"), [f"{number}.png" for number in range(10)]), tmp_path, "greys"
    )


def names(dataset):
    return list(dataset.labels.paths)


def test_facts(dataset, tmp_path):
    assert len(dataset) == 10 and dataset.categories == ("a", "b", "c")
    assert dataset.paths[3] == tmp_path / "3.png" and dataset.labels.paths[3] == "3.png"
    absolute = Dataset(LabelMatrix([[1]], ["a"], ["/data/x.png"]), tmp_path)
    assert absolute.paths == [Path("/data/x.png")]


def test_iteration_gives_pictures_and_their_labels(dataset):
    pairs = list(dataset)
    assert len(pairs) == 10
    for number, (image, labels) in enumerate(pairs):
        assert image.mode == "RGB" and image.size == (4, 3) and image.getpixel((0, 0)) == (20 * number,) * 3
        assert labels.tolist() == dataset.labels.values[number].tolist()
    assert dataset[-1][0].getpixel((0, 0)) == (180,) * 3
    with pytest.raises(IndexError):
        dataset[10]


def test_iteration_may_be_repeated(dataset):
    assert len(list(dataset)) == len(list(dataset)) == 10


def test_take(dataset):
    picked = dataset.take([4, 1])
    assert names(picked) == ["4.png", "1.png"] and picked.root == dataset.root and picked.name == "greys"
    assert picked.labels.values.tolist() == dataset.labels.values[[4, 1]].tolist()
    assert names(dataset.take(np.arange(10) > 7)) == ["8.png", "9.png"]
    assert len(dataset) == 10


def test_hide_is_that_of_the_label_matrix(dataset):
    hidden = dataset.hide(known=0.3, seed=4)
    assert hidden.labels == dataset.labels.hide(0.3, 4) != dataset.labels
    assert hidden.paths == dataset.paths and hidden.name == "greys"


@pytest.mark.parametrize(("fraction", "count"), [(0.0, 0), (0.1, 1), (0.25, 2), (0.5, 5), (1.0, 10)])
def test_split_shares_out_every_image_once(dataset, fraction, count):
    rest, part = dataset.split(fraction, seed=1)
    assert len(part) == count
    assert sorted(names(rest) + names(part)) == sorted(names(dataset))
    for piece in (rest, part):
        assert names(piece) == sorted(names(piece)), "the order of the data is kept"
        for path, row in zip(piece.labels.paths, piece.labels.values, strict=True):
            assert row.tolist() == dataset.labels.values[names(dataset).index(path)].tolist()


def test_split_follows_its_seed(dataset):
    assert names(dataset.split(0.5, 1)[1]) == names(dataset.split(0.5, 1)[1])
    assert len({tuple(names(dataset.split(0.5, seed)[1])) for seed in range(5)}) > 1


def test_split_after_hide_keeps_hidden_labels_hidden(dataset):
    rest, part = dataset.hide(0.0).split(0.5)
    assert not rest.labels.values.any() and not part.labels.values.any()


@pytest.mark.parametrize("fraction", [-0.1, 1.5, 10, float("nan")])
def test_split_refuses_what_is_no_share(dataset, fraction):
    with pytest.raises(SarbError, match="between 0 and 1"):
        dataset.split(fraction)


def test_fingerprint_changes_with_names_sizes_and_times_not_with_labels(dataset, tmp_path):
    before = dataset.fingerprint()
    assert dataset.hide(0.1).fingerprint() == before == dataset.fingerprint()
    assert dataset.take(range(9)).fingerprint() != before
    assert dataset.take([1, 0, *range(2, 10)]).fingerprint() != before
    os.utime(tmp_path / "4.png", ns=(5, 5))
    touched = dataset.fingerprint()
    assert touched != before
    (tmp_path / "4.png").write_bytes((tmp_path / "4.png").read_bytes() + b"x")
    os.utime(tmp_path / "4.png", ns=(5, 5))
    assert dataset.fingerprint() != touched


def test_fingerprint_does_not_depend_on_the_working_folder(dataset, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Dataset(dataset.labels, Path()).fingerprint() == dataset.fingerprint()


def test_a_missing_file_has_a_fingerprint_of_its_own(dataset, tmp_path):
    before = dataset.fingerprint()
    (tmp_path / "4.png").unlink()
    missing = dataset.fingerprint()
    assert missing == dataset.fingerprint() != before
    (tmp_path / "5.png").unlink()
    assert dataset.fingerprint() != missing


def test_data_hides_training_and_validation_but_never_test_labels(dataset):
    data = Data(
        dataset.take(range(4)), dataset.take(range(4, 6)), dataset.take(range(6, 10)), "greys", {"a": 1}
    )
    hidden = data.hide(0.2, seed=3)
    assert hidden.train.labels == data.train.labels.hide(0.2, 3)
    assert hidden.valid.labels == data.valid.labels.hide(0.2, 4)
    assert hidden.test == data.test and hidden.name == "greys" and hidden.notes == {"a": 1}
    assert Data(dataset, dataset).hide(0.5).valid is None
    assert data.categories == ("a", "b", "c")


def test_squares(squares_data):
    assert len(squares_data.train) == 36 and len(squares_data.test) == 12 and squares_data.valid is None
    for split in (squares_data.train, squares_data.test):
        assert (split.labels.positives > 0).all() and (split.labels.negatives > 0).all()
        assert split.labels.known_share == 1 and next(iter(split))[0].size == (64, 64)
