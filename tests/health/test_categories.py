"""Categories that overlap, counted on known labels."""

import numpy as np
import pytest

from sarb.health.categories import related_categories, similar_names, wilson_lower
from sarb.labels import LabelMatrix


def matrix(columns):
    values = np.array(list(columns.values()), np.int8).T
    return LabelMatrix(values, tuple(columns), [f"{row}.jpg" for row in range(len(values))])


def test_wilson_lower_by_hand():
    assert wilson_lower(np.array(60.0), np.array(60.0)) == pytest.approx(60 / (60 + 1.96**2))
    assert wilson_lower(np.array(0.0), np.array(0.0)) == 0


def test_same_and_contained():
    cat = np.repeat([1, -1], [60, 140])
    tabby = np.where(np.arange(200) < 45, 1, -1)
    other = np.tile([1, -1], 100)
    found = related_categories(matrix({"cat": cat, "kitty": cat, "tabby": tabby, "dog": other}))
    assert [item.kind for item in found].count("same_category") == 1
    same = next(item for item in found if item.kind == "same_category")
    assert same.label == "cat" and "60 of 60" in same.detail and same.file_name == ""
    contained = {
        (item.label, item.detail.split("'")[1]) for item in found if item.kind == "contained_category"
    }
    assert contained == {("tabby", "cat"), ("tabby", "kitty")}


def test_unknown_labels_and_few_images_prove_nothing():
    cat = np.repeat([1, -1], [60, 140])
    unknown = cat.copy()
    unknown[10:] = 0  # known in 10 images only
    assert related_categories(matrix({"cat": cat, "kitty": unknown})) == []


def test_a_category_that_is_nearly_always_there_contains_nothing():
    always = np.where(np.arange(400) < 390, 1, -1)
    dog = np.where(np.arange(400) % 2 == 0, 1, -1)
    assert [
        item for item in related_categories(matrix({"indoor": always, "dog": dog})) if item.label == "dog"
    ] == []


def test_similar_names():
    names = [
        "traffic light",
        "Traffic-Light",
        "car",
        "cars",
        "elephant",
        "elefant",
        "elepphant",
        "grade 1",
        "grade 2",
        "cat",
        "cap",
    ]
    found = {(a, b): why for a, b, _, why in similar_names(names)}
    assert found[("traffic light", "Traffic-Light")] == "differ only in case, spaces or signs"
    assert found[("car", "cars")] == "are singular and plural"
    assert found[("elephant", "elepphant")] == "differ in one letter"
    assert set(found) == {("traffic light", "Traffic-Light"), ("car", "cars"), ("elephant", "elepphant")}


def test_a_replaced_letter():
    assert [pair[:2] for pair in similar_names(["giraffe", "girafee", "zebra"])] == [("giraffe", "girafee")]
