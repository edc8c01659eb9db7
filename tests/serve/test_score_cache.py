"""Scores are kept from one start to the next, and never those of another photo or another model."""

import copy
import os

import numpy as np
import pytest
from PIL import Image

import sarb
from sarb.serve.recogniser import Recogniser
from sarb.serve.score_cache import ScoreCache, fingerprint


@pytest.fixture
def starts(open_review, gaps, monkeypatch):
    """Open the review and return the names of the images that were scored, and the probabilities by name."""
    from sarb.serve import opening

    asked = []
    whole = opening.predict

    def counting(model, images, **options):
        asked.extend(path.name for path in images)
        return whole(model, images, **options)

    monkeypatch.setattr(opening, "predict", counting)

    def opening(**options):
        asked.clear()
        desk = open_review(**options)
        desk.close()
        return sorted(asked), desk.questions.probabilities[np.argsort(desk.table.labels.paths)]

    return opening


def expected(recogniser, gaps, names):
    return sarb.predict(recogniser.model, [gaps / name for name in names]).probabilities


def test_the_second_start_scores_nothing_and_says_the_same(starts, gaps):
    names = sorted(path.name for path in gaps.glob("*.jpg"))
    scored, before = starts()
    assert scored == names
    scored, after = starts()
    assert scored == [] and np.array_equal(before, after)


def test_changed_and_new_photos_are_scored_again(starts, gaps, recogniser):
    names = sorted(path.name for path in gaps.glob("*.jpg"))
    table = (gaps / "labels.csv").read_text()
    broken = (gaps / "03.jpg").read_bytes()
    (gaps / "labels.csv").write_text(
        "".join(line for line in table.splitlines(True) if not line.startswith("07"))
    )
    (gaps / "03.jpg").write_bytes(b"no picture")
    starts()
    (gaps / "labels.csv").write_text(table)
    Image.new("RGB", (64, 64), (250, 10, 10)).save(gaps / "05.jpg")
    scored, found = starts()
    assert scored == ["03.jpg", "05.jpg", "07.jpg"]
    (gaps / "03.jpg").write_bytes(broken)
    scored, found = starts()
    assert scored == ["03.jpg"]
    np.testing.assert_allclose(found, expected(recogniser, gaps, names), atol=1e-5)
    (gaps / "04.jpg").write_bytes((gaps / "04.jpg").read_bytes())  # as large as before, but written again
    os.utime(gaps / "09.jpg", ns=(1, 1))
    assert starts()[0] == ["04.jpg", "09.jpg"]


def test_another_model_or_another_review_scores_all(gaps, recogniser, tmp_path):
    model = recogniser.model
    files = sorted(gaps.glob("*.jpg"))
    cache = ScoreCache(model, gaps / "reviewed.csv", files)
    cache.write(np.ones((20, 5), np.float32), np.ones(20, bool))
    assert ScoreCache(model, gaps / "reviewed.csv", files).read()[1].all()
    assert not ScoreCache(model, gaps / "other.csv", files).read()[1].any()
    other = copy.deepcopy(model)
    with_change = next(iter(other.network.parameters()))
    with_change.data[(0,) * with_change.ndim] += 1e-3
    assert fingerprint(other) != fingerprint(model) == fingerprint(copy.deepcopy(model))
    assert not ScoreCache(other, gaps / "reviewed.csv", files).read()[1].any()
    sized = copy.deepcopy(model)
    sized.config["image_size"] = 96
    assert fingerprint(sized) != fingerprint(model)


@pytest.mark.parametrize("damage", [b"", b"rubbish", "cut", "pickle", "shape"])
def test_a_damaged_file_is_not_used(damage, starts, gaps, recogniser):
    names, before = starts()
    files = [gaps / name for name in names]
    cache = ScoreCache(recogniser.model, gaps / "reviewed.csv", files)
    content = cache.file.read_bytes()
    if damage == "pickle":
        np.savez(
            cache.file, logits=np.array([{}], object), marks=np.zeros((1, 2)), paths=np.zeros(1, np.uint8)
        )
    elif damage == "shape":
        np.savez(cache.file, logits=np.zeros((3, 5)), marks=np.zeros((3, 2)), paths=np.zeros(1, np.uint8))
    else:
        cache.file.write_bytes(content[: len(content) // 2] if damage == "cut" else damage)
    scored, after = starts()
    assert scored == names and np.array_equal(before, after)
    assert cache.file.read_bytes() == content


def test_no_place_to_keep_them(starts, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SARB_CACHE", str(tmp_path / "file"))
    assert len(starts()[0]) == len(starts()[0]) == 20


def test_names_of_all_kinds(recogniser, tmp_path):
    files = [tmp_path / name for name in ("ü.jpg", "a b\nc.jpg", "\udcff.jpg", "none.jpg")]
    for file in files[:3]:
        file.write_bytes(b"x")
    logits = np.arange(20, dtype=np.float32).reshape(4, 5)
    readable = np.array([True, True, True, False])
    ScoreCache(recogniser.model, tmp_path / "out.csv", files).write(logits, readable)
    found, known = ScoreCache(recogniser.model, tmp_path / "out.csv", files[::-1]).read()
    assert known.tolist() == [False, True, True, True]
    assert np.array_equal(found[1:], logits[2::-1]) and not found[0].any()


def test_a_review_with_a_calibration_keeps_the_networks_own_scores(
    starts, gaps, run, recogniser, monkeypatch
):
    before = starts()[1]
    own = Recogniser(sarb.load_model(run))
    assert fingerprint(own.model) == fingerprint(recogniser.model)
    names = own.categories
    slope = np.full(5, 2.0)
    made = sarb.Calibration(names, slope, np.zeros(5), np.full(5, 0.5), counts=np.zeros((2, 5, 4), np.int64))
    monkeypatch.setattr(recogniser, "calibration", made)
    scored, after = starts()
    assert scored == []
    np.testing.assert_allclose(
        np.log(after / (1 - after)), 2 * np.log(before / (1 - before)), rtol=1e-4, atol=1e-6
    )
