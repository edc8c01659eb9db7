"""Cached augmented views: the right values, planned as a whole, kept when interrupted."""

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import sarb
from sarb.batches.features import View, cached_views
from sarb.data.images import EvalTransform, TrainTransform, decode
from sarb.errors import SarbError
from sarb.networks import create_backbone
from tests.batches.test_features import Talk
from tests.waiting import PATIENCE

PLAIN, AUGMENT = EvalTransform(32), TrainTransform(32)
MAP = 2 * 32 * 4 * 4  # bytes of one image in fp16: 32 channels of 4×4


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """An empty cache for each test."""
    monkeypatch.setenv("SARB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "features"


@pytest.fixture
def dataset(squares_data):
    return squares_data.train.take(np.arange(7))


@pytest.fixture
def backbone():
    torch.manual_seed(0)
    return create_backbone("tiny", train_stages=1)


@pytest.fixture
def calls(monkeypatch, backbone):
    """Batch sizes the frozen trunk was asked for; after ``calls.limit`` batches it fails."""
    frozen = backbone.frozen
    sizes = SimpleNamespace(list=[], limit=1000)

    def counted(images):
        sizes.list.append(len(images))
        if len(sizes.list) > sizes.limit:
            raise KeyboardInterrupt
        return frozen(images)

    monkeypatch.setattr(backbone, "frozen", counted)
    monkeypatch.setattr("sarb.batches.features.folded", lambda trunk: trunk)  # a copy would not be counted
    return sizes


def wanted(dataset, count, seed=3):
    return [View(dataset, PLAIN), *(View(dataset, AUGMENT, number, seed) for number in range(count))]


# values and keys


@pytest.mark.parametrize("workers", [0, 2])
def test_views_are_what_the_frozen_trunk_makes_of_augmented_images(backbone, dataset, workers):
    plain, *views = cached_views(backbone, wanted(dataset, 2), batch_size=3, workers=workers)
    images = [decode(path) for path in dataset.paths]
    for number, stored in enumerate(views):
        rngs = [np.random.default_rng([3, number, index]) for index in range(7)]
        pixels = np.stack([AUGMENT(image, rng) for image, rng in zip(images, rngs, strict=True)])
        with torch.no_grad():
            expected = backbone.eval().frozen(torch.from_numpy(pixels)).numpy()
        assert stored.activations.dtype == np.float16
        assert stored.activations.astype(np.float32) == pytest.approx(expected, rel=2e-3, abs=1e-4)
    arrays = [plain.activations, *(view.activations for view in views)]
    for one in range(3):
        for other in range(one):
            assert not np.allclose(arrays[one], arrays[other], atol=1e-2)


def test_the_key_of_the_plain_view_is_that_of_earlier_versions(backbone, dataset):
    import hashlib

    parts = [dataset.fingerprint(), backbone.frozen_fingerprint(), json.dumps(PLAIN.config(), sort_keys=True)]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]
    assert (
        View(dataset, PLAIN).file(backbone).name
        == View(dataset, PLAIN, seed=5).file(backbone).name
        == f"{key}.npy"
    )


def test_each_view_and_seed_has_a_file_of_its_own(backbone, dataset):
    views = [
        *wanted(dataset, 3),
        *wanted(dataset, 3, seed=4)[1:],
        View(dataset.take(np.arange(5)), AUGMENT, 0, 3),
    ]
    assert len({view.file(backbone) for view in views}) == 8


def test_more_views_later_add_to_those_that_are_there(backbone, dataset, calls):
    first = cached_views(backbone, wanted(dataset, 2))
    calls.list.clear()
    second = cached_views(backbone, wanted(dataset, 3))
    assert sorted(calls.list) == [1, 7], "one map to know its size, and the new view"
    assert all(np.array_equal(a.activations, b.activations) for a, b in zip(first, second, strict=False))
    calls.list.clear()
    assert len(cached_views(backbone, wanted(dataset, 3))) == 4 and calls.list == []


def test_the_same_view_twice_is_computed_once(backbone, dataset, calls):
    one, other = cached_views(backbone, [View(dataset, PLAIN)] * 2)
    assert np.array_equal(one.activations, other.activations) and sorted(calls.list) == [1, 7]


# size and disk


def test_the_size_of_all_views_is_said_once_and_first(monkeypatch, backbone, dataset, calls):
    talk = Talk()
    monkeypatch.setattr(talk, "say", lambda line: talk.lines.append((line, sum(calls.list))))
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=10**12))
    monkeypatch.setattr(sarb.Dataset, "__len__", lambda self: 7)
    cached_views(backbone, wanted(dataset, 3), progress=talk)
    ((line, computed),) = talk.lines
    assert (
        computed <= 4
        and f"{4 * 7 * MAP / 1e6:,.0f} MB for 7 images and 3 augmented views of 7 images" in line
    )
    talk.lines.clear()
    cached_views(backbone, wanted(dataset, 5), progress=talk)
    assert len(talk.lines) == 1 and "MB for 2 augmented views of 7 images in" in talk.lines[0][0]


@pytest.mark.parametrize(("spare", "refused"), [(8.0, False), (7.9, True), (2.0, True)])
def test_a_short_disk_is_refused_before_anything_is_computed(
    monkeypatch, backbone, dataset, cache, calls, spare, refused
):
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=int(spare * 7 * MAP)))
    if not refused:
        assert len(cached_views(backbone, wanted(dataset, 3))) == 4
        return
    with pytest.raises(SarbError, match="3 augmented views") as error:
        cached_views(backbone, wanted(dataset, 3))
    assert all(word in str(error.value) for word in ("cache_views", "SARB_CACHE", "cache=False"))
    assert max(calls.list) == 1 and list(cache.iterdir()) == []


# interruption, damage, two processes


def test_finished_views_survive_an_interruption(backbone, dataset, cache, calls):
    calls.limit = (
        4 + 3 + 1
    )  # four maps to know the sizes; the plain view has three batches, the first view gets one
    with pytest.raises(KeyboardInterrupt):
        cached_views(backbone, wanted(dataset, 3), batch_size=3)
    plain = View(dataset, PLAIN).file(backbone)
    assert sorted(cache.iterdir()) == [plain.with_suffix(".json"), plain]
    calls.limit, calls.list = 1000, []
    found = cached_views(backbone, wanted(dataset, 3), batch_size=3)
    assert sum(calls.list) == 3 + 3 * 7 and all(view.activations.any(axis=(1, 2, 3)).all() for view in found)


@pytest.mark.parametrize("damage", ["bit", "half"])
def test_a_damaged_view_is_reported_and_computed_again(backbone, dataset, calls, damage):
    before = [np.array(view.activations) for view in cached_views(backbone, wanted(dataset, 2))]
    file = wanted(dataset, 2)[2].file(backbone)
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content if damage == "bit" else content[: len(content) // 2])
    talk, calls.list = Talk(), []
    after = cached_views(backbone, wanted(dataset, 2), progress=talk)
    assert sorted(calls.list) == [1, 7] and str(file) in talk.lines[0] and "damaged" in talk.lines[0]
    assert all(np.array_equal(one, other.activations) for one, other in zip(before, after, strict=True))
    talk.lines.clear()
    cached_views(backbone, wanted(dataset, 2), progress=talk)
    assert talk.lines == []


BUILD = """
import sys, torch, numpy as np, sarb
from sarb.data.images import EvalTransform, TrainTransform
from sarb.batches.features import View, cached_views
from sarb.networks import create_backbone
torch.set_num_threads(1); torch.manual_seed(0)
backbone = create_backbone("tiny", train_stages=1)
data = sarb.load(sys.argv[1], encoding="binary").train.take(np.arange(7))
views = [View(data, EvalTransform(32)), *(View(data, TrainTransform(32), number, 3) for number in range(2))]
print(*(int(view.activations.view(np.uint16).astype(int).sum()) for view in cached_views(backbone, views)))
"""


def test_two_processes_build_the_same_cache(backbone, squares, dataset, cache):
    command = [sys.executable, "-c", BUILD, str(squares / "labels.csv")]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    one, other = (process.communicate(timeout=PATIENCE)[0] for process in processes)
    talk = Talk()
    found = cached_views(backbone, wanted(dataset, 2), progress=talk)
    sums = [int(view.activations.view(np.uint16).astype(int).sum()) for view in found]
    assert one == other and one.split() == [str(value) for value in sums] and talk.lines == []
    assert len(list(cache.iterdir())) == 6


def test_who_has_waited_takes_what_the_other_has_computed(monkeypatch, backbone, dataset, calls):
    from sarb.batches import features

    builder, entered = features.only_builder, []

    def slow(file, say):
        if not entered:  # the other process is faster by all three views
            entered.append(file)
            cached_views(backbone, wanted(dataset, 2))
        return builder(file, say)

    monkeypatch.setattr(features, "only_builder", slow)
    assert len(cached_views(backbone, wanted(dataset, 2))) == 3
    assert sum(size for size in calls.list if size > 1) == 3 * 7
