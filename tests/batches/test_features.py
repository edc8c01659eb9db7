"""The feature cache: computed once, keyed by all that decides it, never half written."""

import os
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from sarb.batches.features import View, cached_features
from sarb.data.images import EvalTransform
from sarb.errors import SarbError
from sarb.networks import create_backbone


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """An empty cache for each test."""
    monkeypatch.setenv("SARB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "features"


@pytest.fixture
def backbone():
    torch.manual_seed(0)
    return create_backbone("tiny", train_stages=1)


@pytest.fixture
def dataset(squares_data):
    return squares_data.train.take(np.arange(7))


@pytest.fixture
def calls(monkeypatch, backbone):
    """Batch sizes the frozen trunk was asked for."""
    sizes, frozen = [], backbone.frozen

    def counted(images):
        sizes.append(len(images))
        return frozen(images)

    monkeypatch.setattr(backbone, "frozen", counted)
    return sizes


class Talk:
    """Remembers what was said."""

    def __init__(self):
        from sarb.progress import Progress

        self.lines, self.bar = [], Progress(False).bar

    def say(self, line):
        self.lines.append(line)

    def detail(self, line):
        """Not said."""

    def once(self, line):
        assert line == "features: from the feature cache"


TRANSFORM = EvalTransform(32)


def cache_file(backbone, dataset, transform):
    return View(dataset, transform).file(backbone)


@pytest.mark.parametrize("workers", [0, 2])
def test_values_are_those_of_the_frozen_trunk_rounded_to_fp16(backbone, dataset, workers):
    stored = cached_features(backbone, dataset, TRANSFORM, batch_size=3, workers=workers).activations
    images = torch.from_numpy(np.stack([TRANSFORM(image) for image, _ in dataset]))
    with torch.no_grad():
        expected = backbone.eval().frozen(images)
    assert (
        stored.dtype == np.float16 and stored.shape == (7, *expected.shape[1:]) and expected.abs().max() > 0.1
    )
    assert torch.from_numpy(stored.astype(np.float32)).numpy() == pytest.approx(
        expected.numpy(), rel=2e-3, abs=1e-4
    )


def test_values_do_not_depend_on_the_mode_the_trunk_was_in(dataset, cache):
    results = []
    for training in (True, False):
        torch.manual_seed(0)
        backbone = create_backbone("tiny", train_stages=1).train(training)
        results.append(np.array(cached_features(backbone, dataset, TRANSFORM).activations))
        for file in cache.iterdir():
            file.unlink()
    assert np.array_equal(*results)


def test_the_second_call_does_not_run_the_trunk(backbone, dataset, calls):
    first = cached_features(backbone, dataset, TRANSFORM, batch_size=3)
    assert sum(calls) >= 7
    calls.clear()
    second = cached_features(backbone, dataset, TRANSFORM, batch_size=3)
    assert calls == [] and np.array_equal(first.activations, second.activations)
    assert first.unreadable == second.unreadable == {}


def test_labels_do_not_matter_to_the_cache(backbone, dataset, calls):
    cached_features(backbone, dataset, TRANSFORM)
    calls.clear()
    cached_features(backbone, dataset.hide(0.1, 3), TRANSFORM)
    assert calls == []


def test_the_result_is_a_read_only_memory_map(backbone, dataset):
    stored = cached_features(backbone, dataset, TRANSFORM).activations
    assert isinstance(stored, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        stored[0] = 0


def test_values_beyond_fp16_are_clipped_not_infinite(monkeypatch, backbone, dataset):
    monkeypatch.setattr(backbone, "frozen", lambda images: images.new_full((len(images), 1, 1, 2), -1e6))
    monkeypatch.setattr("sarb.batches.features.folded", lambda trunk: trunk)
    assert (cached_features(backbone, dataset, TRANSFORM).activations == -65504).all()


# the key


def test_the_key_changes_with_the_frozen_weights_only(backbone, dataset):
    before = cache_file(backbone, dataset, TRANSFORM)
    with torch.no_grad():
        backbone.stage3[0][0].weight.add_(1)  # trained, behind the cut
    assert cache_file(backbone, dataset, TRANSFORM) == before
    with torch.no_grad():
        backbone.stage1[0].weight.add_(1)
    assert cache_file(backbone, dataset, TRANSFORM) != before


def test_the_key_changes_with_batch_norm_statistics_and_the_cut(backbone, dataset):
    before = cache_file(backbone, dataset, TRANSFORM)
    backbone.freeze(2)
    other_cut = cache_file(backbone, dataset, TRANSFORM)
    backbone.freeze(1)
    assert cache_file(backbone, dataset, TRANSFORM) == before != other_cut
    backbone.stage1[1].running_mean.add_(1)
    assert cache_file(backbone, dataset, TRANSFORM) != before


def test_the_key_changes_with_the_transform(backbone, dataset):
    transforms = [
        EvalTransform(32),
        EvalTransform(64),
        EvalTransform(32, (1, 2, 3)),
        EvalTransform(32, std=(1, 2, 3)),
    ]
    assert len({cache_file(backbone, dataset, transform) for transform in transforms}) == 4
    assert cache_file(backbone, dataset, EvalTransform(32)) == cache_file(backbone, dataset, TRANSFORM)


def test_the_key_changes_with_the_files(backbone, squares_data, dataset, tmp_path):
    before = cache_file(backbone, dataset, TRANSFORM)
    assert cache_file(backbone, squares_data.train.take([1, 0, 2, 3, 4, 5, 6]), TRANSFORM) != before
    assert cache_file(backbone, dataset.take([0, 1]), TRANSFORM) != before
    copied = tmp_path / "copied"
    copied.mkdir()
    for path in dataset.paths:
        (copied / path.name).write_bytes(path.read_bytes())
    moved = type(dataset)(dataset.labels, copied)
    first = cache_file(backbone, moved, TRANSFORM)
    assert first != before
    os.utime(moved.paths[3], ns=(1, 1))
    assert cache_file(backbone, moved, TRANSFORM) != first


def test_the_cache_is_where_the_environment_says(backbone, dataset, cache):
    cached_features(backbone, dataset, TRANSFORM)
    file = cache_file(backbone, dataset, TRANSFORM)
    assert sorted(cache.iterdir()) == [file.with_suffix(".json"), file]


# size and disk


def test_it_says_its_size_first(monkeypatch, backbone, dataset, calls):
    talk = Talk()
    monkeypatch.setattr(talk, "say", lambda line: talk.lines.append((line, sum(calls))))
    stored = cached_features(backbone, dataset, TRANSFORM, progress=talk).activations
    (line, already_computed), *more = talk.lines
    assert not more and already_computed <= 1
    assert f"{stored.nbytes / 1e6:,.0f} MB for 7 images" in line and "GB free" in line
    assert str(cache_file(backbone, dataset, TRANSFORM).parent) in line
    talk.lines.clear()
    cached_features(backbone, dataset, TRANSFORM, progress=talk)
    assert talk.lines == []


@pytest.mark.parametrize(("spare", "refused"), [(2.0, False), (1.9, True), (0.5, True)])
def test_it_refuses_to_fill_the_disk(monkeypatch, backbone, dataset, cache, calls, spare, refused):
    needed = 2 * 7 * 32 * 4 * 4  # fp16, seven images, 32 channels of 4×4
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=int(spare * needed)))
    if not refused:
        assert cached_features(backbone, dataset, TRANSFORM).activations.nbytes == needed
        return
    with pytest.raises(SarbError, match="SARB_CACHE") as error:
        cached_features(backbone, dataset, TRANSFORM)
    assert "cache=False" in str(error.value) and sum(calls) <= 1
    assert list(cache.iterdir()) == []


# interruptions


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_an_interruption_leaves_nothing_behind_and_the_next_call_starts_over(
    monkeypatch, dataset, cache, failure
):
    torch.manual_seed(0)
    backbone = create_backbone("tiny", train_stages=1)
    frozen, seen = backbone.frozen, []

    def breaks(images):
        seen.append(len(images))
        if len(seen) == 3:
            raise failure
        return frozen(images)

    with monkeypatch.context() as patch:
        patch.setattr(backbone, "frozen", breaks)
        with pytest.raises(failure):
            cached_features(backbone, dataset, TRANSFORM, batch_size=2)
    assert len(seen) == 3 and list(cache.iterdir()) == []
    assert cached_features(backbone, dataset, TRANSFORM).activations.any(axis=(1, 2, 3)).all()


@pytest.mark.parametrize("position", [0, 3])
def test_an_unreadable_image_is_named_and_nothing_is_left(backbone, dataset, cache, tmp_path, position):
    folder = tmp_path / "copied"
    folder.mkdir()
    for path in dataset.paths:
        (folder / path.name).write_bytes(path.read_bytes())
    broken = type(dataset)(dataset.labels, folder)
    broken.paths[position].write_text("no picture")
    with pytest.raises(SarbError, match=broken.paths[position].name):
        cached_features(backbone, broken, TRANSFORM)
    assert list(cache.iterdir()) == []


def test_an_unreadable_first_image_is_named_with_every_backbone(dataset, tmp_path):
    broken = type(dataset)(dataset.labels.take([0]), tmp_path)
    broken.paths[0].write_text("no picture")
    for name in ("resnet18", "efficientnet_lite0"):
        with pytest.raises(SarbError, match=broken.paths[0].name):
            cached_features(create_backbone(name, weights=None), broken, EvalTransform(32))


def test_an_empty_data_set_gives_an_empty_array(backbone, dataset):
    assert len(cached_features(backbone, dataset.take(np.zeros(7, bool)), TRANSFORM).activations) == 0


# unreadable images, at most 1 %


@pytest.fixture
def many(dataset, tmp_path):
    """Two hundred images, number 41 no picture, number 70 missing."""
    folder = tmp_path / "many"
    folder.mkdir()
    names = [f"{number:03d}.jpg" for number in range(200)]
    for number, name in enumerate(names):
        (folder / name).write_bytes(dataset.paths[number % 7].read_bytes())
    (folder / names[41]).write_text("no picture")
    (folder / names[70]).unlink()
    labels = dataset.labels.take(np.arange(200) % 7)
    return type(dataset)(type(labels)(labels.values, labels.categories, names), folder)


def test_unreadable_rows_are_remembered(backbone, many, cache, calls):
    first = cached_features(backbone, many, TRANSFORM, batch_size=3)
    assert list(first.unreadable) == [41, 70]
    assert "041.jpg: not an image" in first.unreadable[41] and "070.jpg: no such file" in first.unreadable[70]
    empty = np.isnan(first.activations).all(axis=(1, 2, 3))
    assert np.flatnonzero(empty).tolist() == [41, 70] and np.isfinite(first.activations[~empty]).all()
    assert sorted(path.suffix for path in cache.iterdir()) == [".json", ".npy"]
    calls.clear()
    second = cached_features(backbone, many, TRANSFORM)
    assert calls == [] and second.unreadable == first.unreadable


def test_a_batch_without_a_readable_image_is_no_problem(backbone, many):
    assert list(cached_features(backbone, many, TRANSFORM, batch_size=1).unreadable) == [41, 70]


def test_a_mended_image_has_another_cache(backbone, many):
    before = cached_features(backbone, many, TRANSFORM)
    (many.root / "070.jpg").write_bytes((many.root / "000.jpg").read_bytes())
    after = cached_features(backbone, many, TRANSFORM)
    assert list(after.unreadable) == [41]
    assert np.array_equal(after.activations[70], before.activations[0])


def test_an_old_list_of_a_cache_that_was_never_finished_does_not_count(backbone, dataset, cache):
    cache.mkdir(parents=True)
    cache_file(backbone, dataset, TRANSFORM).with_suffix(".json").write_text('[[3, "old"]]')
    assert cached_features(backbone, dataset, TRANSFORM).unreadable == {}


def test_too_many_stop_the_computation_early(backbone, many, cache, calls):
    for number in (0, 1, 2):
        (many.root / f"{number:03d}.jpg").write_text("no picture")
    with pytest.raises(SarbError, match="at least 3 of 200 images cannot be read") as error:
        cached_features(backbone, many, TRANSFORM, batch_size=4)
    assert "sarb data check SRC" in str(error.value) and "000.jpg: not an image" in str(error.value)
    assert sum(calls) <= 4 and list(cache.iterdir()) == []
