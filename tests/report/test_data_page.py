"""The page about a data set: self-contained, escaped, complete, and never stopped by a picture."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

from sarb.data.check.stats import stats
from sarb.data.dataset import Data, Dataset
from sarb.labels import LabelMatrix
from sarb.report import data_page, html, plots
from tests.report.conftest import NASTY, draw_pictures, names
from tests.report.test_page import Page
from tests.report.test_plots import colours

HEADINGS = [
    "Split by split",
    "Category by category",
    "Image by image",
    "What appears together",
    "Sample images",
]


def make(values, categories=None, paths=None, test=0):
    values = np.asarray(values)
    labels = LabelMatrix(values, categories or names(values.shape[1]), paths)
    cut = len(labels) - test
    return Data(
        Dataset(labels.take(np.arange(cut))),
        Dataset(labels.take(np.arange(cut, len(labels)))),
        name="my <data>",
    )


@pytest.fixture
def no_plots(monkeypatch):
    """Leave out the drawing, which takes nearly all the time."""
    monkeypatch.setattr(
        data_page, "_plot", lambda draw, caption, style="": html.Plot("", "", caption, caption)
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    paths = draw_pictures(folder / "pictures", 7)
    (folder / "broken <i>.jpg").write_bytes(b"no image")
    paths += [str(folder / "broken <i>.jpg"), str(folder / "gone.jpg")]
    values = np.random.default_rng(0).integers(-1, 2, (9, 5))
    values[:, 4] = 1
    found = stats(make(values, NASTY, paths, test=2))
    return found.save(folder / "stats.html").read_text(encoding="utf-8")


def test_self_contained(written):
    page = Page(written)
    assert page.headings == HEADINGS
    for tag, key, value in page.attributes:
        if key in ("src", "srcset"):
            assert value.startswith("data:image/"), (tag, key)
        if key == "href":
            assert value.startswith("#"), value
    outside = re.sub(r"data:image/[^\"]*", "", written)
    assert "http://" not in outside and "https://" not in outside and "url(" not in outside
    assert written.count('media="screen and (prefers-color-scheme: dark)"') == 4


def test_everything_is_escaped(written):
    page = Page(written)
    assert page.tags.count("script") == 1 and "data" not in page.tags and "i" not in page.tags
    for text in (*NASTY, "my <data>", "broken <i>.jpg", "photo <0> & co.jpg"):
        assert text in page.text, text


def test_unreadable_pictures_are_tiles_with_the_reason(written):
    assert 'class="broken" title="no such file"><span>no such file</span>' in written
    assert "<span>not an image (JPEG," in written
    # each of the nine images once on the sheet, the seven readable ones as pictures
    sheet = written[written.index('class="thumbs"') : written.index('class="strips"')]
    assert sheet.count('<article class="sample">') == 9
    assert sheet.count("data:image/jpeg") == 7 and sheet.count('class="broken"') == 2


def test_labels_below_a_picture(no_plots):
    found = stats(make([[1, -1, -1, 1], [0, 0, 0, 0], [1] * 4], ["cat", "dog", "car", "kite"]))
    text = data_page.data_page(found)
    assert (
        '<p class="chips"><span>cat</span><span>kite</span></p><p class="note">train · 2 known absent</p>'
        in text
    )
    assert (
        '<p class="chips"><em>no known positives</em></p><p class="note">train · 0 known absent</p>' in text
    )
    many = data_page.data_page(stats(make(np.ones((1, 20), int))))
    assert "<em>and 8 more</em>" in many


def sampled(text):
    return re.findall(r'<h3 title="([^"]*)">', text)


def test_samples_are_seeded_and_spread_over_the_splits(no_plots):
    found = stats(make(np.ones((200, 2), int), test=100))
    first, again = (sampled(data_page.data_page(found, seed=1)) for _ in range(2))
    assert first == again and len(set(first)) == 24
    assert any(int(name) < 100 for name in first) and any(int(name) >= 100 for name in first)
    assert sampled(data_page.data_page(found, seed=2)) != first
    assert len(sampled(data_page.data_page(found, samples=3))) == 3
    assert sampled(data_page.data_page(found, samples=0)) == []


def test_images_can_be_left_out(no_plots, monkeypatch):
    monkeypatch.setattr("sarb.report.html.thumbnail", lambda *_: pytest.fail("an image was opened"))
    text = data_page.data_page(stats(make([[1, 1]])), images=False)
    assert "they were left out" in text and 'class="thumbs"' not in text


def test_thumbnails_are_small(tmp_path):
    Image.new("RGB", (1000, 500), "red").save(tmp_path / "a.jpg")
    encoded = html.thumbnail(tmp_path / "a.jpg", 160).source.removeprefix("data:image/jpeg;base64,")
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as image:
        assert image.format == "JPEG" and image.size == (160, 80)


def test_rows_of_the_most_and_least_frequent_categories(no_plots):
    values = -np.ones((40, 12), int)
    for category in range(11):
        values[: 3 * category + 1, category] = 1  # 1, 4, … 31 positives, and none of the last
    text = data_page.data_page(stats(make(values, [f"c{index}" for index in range(12)])))
    rows = re.findall(r'<h4>(c\d+) <span class="note">(\d+) known', text)
    ends = [("c10", "31"), ("c9", "28"), ("c8", "25"), ("c7", "22")]
    assert rows == [*ends, ("c3", "10"), ("c2", "7"), ("c1", "4"), ("c0", "1")]
    strips = text[text.index('class="strips"') :]
    assert strips.count('class="broken"') == 7 * 4 + 1


def test_numbers_on_the_page(no_plots):
    text = data_page.data_page(stats(make([[1, 0], [1, -1], [0, 0]], ["cat", "dog"])))
    cards = dict(re.findall(r'<span class="label">([^<]*)</span><span class="value">([^<]*)</span>', text))
    assert cards == {
        "Known labels": "50.0 %",
        "Images": "3",
        "Categories": "2",
        "Positives": "0.67",
        "All positives": "1.00",
    }
    assert "train: no known positive for dog" in text and "test has no images" in text
    assert '<td data-value="0.3333333333333333">33.3 %</td>' in text  # known share of dog


def test_many_categories_are_cut_and_said(no_plots):
    values = np.random.default_rng(0).integers(-1, 2, (30, 1200))
    text = data_page.data_page(stats(make(values)), images=False)
    assert "The 30 most and the 30 least frequent are shown, 1,140 are left out." in text
    assert "The 500 most and the 500 least frequent are shown, 200 are left out." in text
    assert "The 60 most frequent of 1,200 categories are shown." in text


@pytest.mark.parametrize(
    "values",
    [np.zeros((0, 2)), np.zeros((3, 2)), [[1]], [[1, 1]], np.zeros((2, 0))],
    ids=["no image", "nothing known", "one category", "one image", "no category"],
)
def test_little_data_is_drawn(values, tmp_path):
    text = stats(make(np.asarray(values, int))).save(tmp_path / "s.html").read_text(encoding="utf-8")
    assert Page(text).headings == HEADINGS
    assert ("no image is known to show two categories" in text) == (np.asarray(values).sum() != 2)


def test_fewer_bars():
    assert plots.fewer_bars({"a": [4, 5], "b": [1]}) == (["0", "1"], {"a": [4, 5], "b": [1, 0]})
    labels, groups = plots.fewer_bars({"a": [1] * 50})
    assert labels[:2] == ["0–2", "3–5"] and len(labels) == 17 and groups["a"] == [3] * 16 + [2]
    assert plots.fewer_bars({"a": []}) == (["0"], {"a": [0]})


def blue(present):
    with Image.open(io.BytesIO(plots.label_counts([("cat", present, 100 - present, 20)]))) as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    row = pixels[pixels.shape[0] // 2]
    return np.count_nonzero(row[:, 2] - row[:, 0] > 100)


def test_the_length_of_a_bar_follows_the_count():
    assert blue(80) == pytest.approx(2 * blue(40), rel=0.05)


@pytest.mark.parametrize("count", [0, 1, 60])
def test_pictures_have_something_in_them(count):
    assert colours(plots.label_counts([(name, 1, 2, 3) for name in names(count)])) > 5
    assert colours(plots.image_histogram({"train": [1] * count, "test": []}, ["x"] * count, "things")) > 5
