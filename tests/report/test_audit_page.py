"""The page of an audit: self-contained, escaped, with an alt text for every picture."""

import re
from pathlib import Path

import numpy as np
import pytest

from sarb.health.findings import Audit, Finding, Images
from sarb.labels import LabelMatrix
from sarb.report.audit_page import SHOWN, audit_page
from tests.report.conftest import draw_pictures
from tests.report.test_page import Page


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    paths = draw_pictures(tmp_path_factory.mktemp("pictures"), 4)
    names = ["a<b>.jpg", "c.jpg", "d.jpg", "e.jpg"]
    labels = LabelMatrix(np.zeros((4, 1), np.int8), ("cat & dog",), names)
    return Images(names, [Path(path) for path in paths], ["train", "train", "test", "test"], labels)


@pytest.fixture(scope="module")
def text(images):
    findings = [
        images.pair("near_duplicate", 0, 2, 0.9, "in two splits (leakage)"),
        images.pair("near_duplicate", 0, 1, 0.8, "same picture"),
        *(images.finding("label", 1, 0.9, "given as present", label="cat & dog") for _ in range(SHOWN + 1)),
        Finding("same_category", 0.95, "'x' and 'y' <same>", label="x"),
    ]
    skipped = [("bad<i>.jpg", "bad<i>.jpg: not an image")]
    return audit_page(Audit("my <data>", images, findings, skipped, ["the labels of 7 images"]))


def test_sections_in_order(text):
    headings = re.findall(r"<h2>(.+?)</h2>", text)
    assert headings == [
        "Leakage",
        "Near duplicates",
        "Labels that look wrong",
        "Categories that are the same",
        "Unreadable images",
    ]
    assert len(re.findall(r"<h1>", text)) == 1


def test_it_loads_nothing_and_escapes_everything(text):
    sources = re.findall(r"(?:src|href)=\"([^\"]+)\"", text)
    assert sources and all(source.startswith(("data:image/jpeg;base64,", "#")) for source in sources)
    assert "my &lt;data&gt;" in text and "a&lt;b&gt;.jpg (train)" in text and "&lt;same&gt;" in text
    assert "<i>.jpg" not in text


def test_every_picture_has_an_alt_text_and_pairs_have_two(text):
    page = Page(text)
    pictures = page.tags.count("img")
    alternatives = [value for tag, key, value in page.attributes if (tag, key) == ("img", "alt")]
    assert pictures == len(alternatives) == 4 + SHOWN
    assert alternatives[:2] == ["a<b>.jpg, train image", "d.jpg, test image"]


def test_long_lists_are_cut_and_it_says_so(text):
    assert f"{SHOWN + 1} findings; the {SHOWN} surest are shown, the CSV file has all." in text
    assert "Not judged: the labels of 7 images." in text
    assert '<th scope="col">' in text


def test_nothing_found(images):
    assert "Nothing to fix was found." in audit_page(Audit("mine", images, []))
