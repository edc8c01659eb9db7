"""Which images of a source are meant when a split is named, and when none is."""

import csv

import numpy as np
import pytest
from PIL import Image

import sarb
from sarb.data.dataset import Dataset, joined
from sarb.data.splits import chosen, drawn, own_splits
from sarb.errors import ConfigError, DataError
from sarb.labels import LabelMatrix


@pytest.fixture
def table(tmp_path):
    """Write a table of ten images with these splits; None has no split column."""

    def write(splits=None):
        with (tmp_path / "labels.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["file_name", *(["split"] if splits else []), "cat", "dog"])
            for number in range(10):
                Image.new("RGB", (4, 4)).save(tmp_path / f"{number}.png")
                word = [splits[number % len(splits)]] if splits else []
                writer.writerow([f"{number}.png", *word, number % 2, 1 - number % 2])
        return sarb.load(tmp_path / "labels.csv", encoding="binary")

    return write


def names(dataset):
    return list(dataset.labels.paths)


def test_a_table_without_splits_is_taken_whole_and_in_its_order(table):
    data = table()
    assert drawn(data) == ["test"] and own_splits(data) == [] and len(data.test) == 2
    dataset, split = chosen(data)
    assert split == "all" and names(dataset) == [f"{number}.png" for number in range(10)]
    assert dataset.labels.values.tolist() == [[1, -1] if n % 2 else [-1, 1] for n in range(10)]
    assert [dataset.line(row) for row in range(3)] == [2, 3, 4]
    dataset, split = chosen(data, "test")
    assert split == "test" and names(dataset) == names(data.test)


def test_splits_of_its_own_give_the_test_images(table):
    data = table(["train", "valid", "test"])
    assert drawn(data) == [] and own_splits(data) == ["train", "valid", "test"]
    dataset, split = chosen(data)
    assert split == "test" and names(dataset) == ["2.png", "5.png", "8.png"]
    assert names(chosen(data, "valid")[0]) == ["1.png", "4.png", "7.png"]
    assert names(chosen(data, "all")[0]) == names(data.all) == [f"{number}.png" for number in range(10)]


def test_a_random_share_is_never_taken_for_the_test_images_of_a_source_with_splits(table):
    data = table(["train", "valid"])
    assert own_splits(data) == ["train", "valid"]
    with pytest.raises(DataError, match="no images in split 'test'; choose train, valid or all"):
        chosen(data)
    assert len(chosen(data, "all")[0]) == 10


def test_wrong_names(table):
    data = table()
    with pytest.raises(ConfigError, match="Did you mean 'valid'"):
        chosen(data, "vaild")
    with pytest.raises(DataError, match="no images in split 'valid'; choose train, test or all"):
        chosen(data, "valid")


def test_splits_with_folders_of_their_own_keep_their_files(tmp_path):
    parts = [
        Dataset(LabelMatrix(np.array([[code]]), ["cat"], ["same.png"]), tmp_path / folder)
        for folder, code in (("a", 1), ("b", -1))
    ]
    together = joined(parts)
    assert together.paths == [tmp_path / "a/same.png", tmp_path / "b/same.png"]
    assert together.labels.values.tolist() == [[1], [-1]]
