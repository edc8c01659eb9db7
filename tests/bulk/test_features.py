"""Features behind train and calibrate by many workers: the file of the cache that one process would write."""

import json
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from sarb import bulk
from sarb.batches.cache_files import parts_of
from sarb.batches.features import View, cached_features, cached_views
from sarb.bulk import features, processes
from sarb.bulk.features import Helpers
from sarb.bulk.records import ARRAY, PLAN
from sarb.data.images import EvalTransform, TrainTransform
from sarb.errors import ConfigError, ImageError, SarbError
from sarb.networks import create_backbone
from sarb.networks.backbones.given import GivenMaps
from sarb.progress import Progress
from tests.bulk.killing import kill_a_worker
from tests.documentation.tools import run as command


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
def views(squares_data):
    plain = EvalTransform(64)
    return [View(squares_data.train, plain), View(squares_data.train, TrainTransform(64), 1, seed=3)]


@pytest.fixture
def alone(backbone, views, cache):
    """What one process computes; the cache is empty again afterwards."""
    found = [np.array(features.activations) for features in cached_views(backbone, views)]
    shutil.rmtree(cache)
    return found


def same(found, expected):
    scale = max(float(np.abs(part).max()) for part in expected)
    for one, other in zip(found, expected, strict=True):
        assert one.activations.shape == other.shape and not one.unreadable
        np.testing.assert_allclose(one.activations, other, atol=1e-3 * scale)


@pytest.mark.parametrize("workers", [1, 2])
def test_local_workers_compute_what_one_process_does(cache, backbone, views, alone, workers):
    with bulk.features_by("local", workers=workers, part_size=7, batch_size=3):
        found = cached_views(backbone, views)
    same(found, alone)
    assert sorted(file.suffix for file in cache.iterdir()) == [".json", ".json", ".npy", ".npy"]
    record = json.loads(views[0].file(backbone).with_suffix(".json").read_text())
    assert record["engine"] == "PyTorch" and record["unreadable"] == []
    torch.manual_seed(1)
    same(cached_views(backbone, views), alone)  # from the cache


def after_each(monkeypatch, happens):
    """Let something happen after each part; return the numbers of images of the parts."""
    parts, real = [], features.do

    def watched(*given):
        for part in real(*given):
            parts.append(part.images)
            yield part
            happens()

    monkeypatch.setattr(features, "do", watched)
    return parts


@pytest.mark.slow
def test_ray_computes_the_same_though_a_worker_is_killed(cluster, monkeypatch, backbone, views, alone):
    killed = []
    after_each(monkeypatch, lambda: None if killed else killed.extend([1] * kill_a_worker()))
    with bulk.features_by("ray", workers=2, part_size=4, batch_size=3):
        found = cached_views(backbone, views)
    assert killed
    same(found, alone)


def test_a_local_worker_that_is_killed_is_replaced(monkeypatch, backbone, views, alone):
    start, pids = processes.Process._running, []

    def running(self):
        process = start(self)
        if process.pid not in pids:
            pids.append(process.pid)
            if len(pids) == 1:
                process.kill()
        return process

    monkeypatch.setattr(processes.Process, "_running", running)
    with bulk.features_by("local", workers=2, part_size=7):
        same(cached_views(backbone, views[:1]), alone[:1])
    assert len(pids) == 3


def test_it_goes_on_where_it_stopped(monkeypatch, cache, backbone, views, alone):
    helpers = Helpers("local", workers=1, part_size=5)
    view, shape = views[1], alone[1].shape
    file = view.file(backbone)

    def stop():
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        after_each(patch, stop)
        with pytest.raises(KeyboardInterrupt):
            helpers.compute(file, backbone, view, shape, Progress(False))
    records = sorted(parts_of(file).glob("part-*.json"))
    assert [record.name for record in records] == ["part-000000.json"]
    before = records[0].stat().st_mtime_ns
    found = helpers.compute(file, backbone, view, shape, Progress(False))
    assert records[0].stat().st_mtime_ns == before  # kept
    np.testing.assert_allclose(np.load(found.array), alone[1], atol=1e-3 * np.abs(alone[1]).max())

    array = np.load(found.array, mmap_mode="r+")
    array[6] = 7  # part 1 is damaged
    array.flush()
    times = [record.stat().st_mtime_ns for record in sorted(parts_of(file).glob("part-*.json"))]
    found = helpers.compute(file, backbone, view, shape, Progress(False))
    now = [record.stat().st_mtime_ns for record in sorted(parts_of(file).glob("part-*.json"))]
    assert [new != old for new, old in zip(now, times, strict=True)] == [n == 1 for n in range(len(now))]
    np.testing.assert_allclose(np.load(found.array), alone[1], atol=1e-3 * np.abs(alone[1]).max())

    other = Helpers("local", workers=1, part_size=6)  # other parts: from the start
    other.compute(file, backbone, view, shape, Progress(False))
    assert json.loads((parts_of(file) / PLAN).read_text())["part_size"] == 6
    assert len(list(parts_of(file).glob("part-*.json"))) == -(-shape[0] // 6)


def test_unreadable_images_are_listed_and_too_many_stop_it(squares_data, tmp_path, backbone):
    folder = tmp_path / "images"
    folder.mkdir()
    pixels = np.random.default_rng(0).integers(0, 255, (150, 20, 20, 3), dtype=np.uint8)
    names = [f"{number:03d}.png" for number in range(150)]
    for name, image in zip(names, pixels, strict=True):
        Image.fromarray(image).save(folder / name)
    (folder / "037.png").write_text("no image")
    from sarb.data.dataset import Dataset
    from sarb.labels import LabelMatrix

    labels = LabelMatrix(np.ones((150, 1), np.int8), ("a",), names)
    data = Dataset(labels, folder)
    expected = cached_features(backbone, data, EvalTransform(32))
    View(data, EvalTransform(32)).file(backbone).unlink()
    with bulk.features_by("local", workers=1, part_size=40):
        found = cached_features(backbone, data, EvalTransform(32))
    assert found.unreadable == expected.unreadable and list(found.unreadable) == [37]
    assert np.isnan(found.activations[37]).all() and np.isfinite(found.activations[36]).all()
    (folder / "002.png").write_text("no image either")
    (folder / "149.png").write_text("nor this")
    with bulk.features_by("local", workers=1, part_size=40), pytest.raises(ImageError, match="of 150 images"):
        cached_features(backbone, data, EvalTransform(32))


def test_workers_that_do_not_share_the_disk_are_told_apart(monkeypatch, backbone, views, alone):
    view = views[0]
    helpers = Helpers("local", workers=1, part_size=30)
    file = view.file(backbone)
    monkeypatch.setattr("sarb.bulk.features.right", lambda *given: False)
    with pytest.raises(SarbError, match="set SARB_CACHE to a folder on a disk that all of them share"):
        helpers.compute(file, backbone, view, alone[0].shape, Progress(False))
    shutil.rmtree(parts_of(file))
    from sarb.bulk.feature_worker import FeatureWorker
    from sarb.bulk.job import FEATURES, Job

    (parts_of(file)).mkdir(parents=True)
    part = FeatureWorker(Job(FEATURES, "key", str(parts_of(file)), "identity", "model", {}, 3, 1)).do(0)
    assert "not here. Every worker must see this folder" in part.error
    assert not (parts_of(file) / ARRAY).exists()


def test_what_cannot_be_sent_is_refused(monkeypatch, backbone, views):
    with bulk.features_by("local"), pytest.raises(SarbError, match="was not made by its name"):
        cached_views(GivenMapsWithWeights(), views[:1])
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="without torchrun"), bulk.features_by("local"):
        pass
    monkeypatch.setenv("WORLD_SIZE", "1")
    with pytest.raises(ConfigError, match="unknown engine 'rey'"), bulk.features_by("rey"):
        pass
    with (
        pytest.raises(ConfigError, match="at least one image per part"),
        bulk.features_by("local", part_size=0),
    ):
        pass


class GivenMapsWithWeights(GivenMaps):
    """A backbone without a name."""

    def __init__(self):
        super().__init__(3)
        self.weight = torch.nn.Parameter(torch.zeros(1))


def test_train_and_calibrate_use_it(monkeypatch, squares, tmp_path, capsys):
    """The commands, with a network that is trained on cached maps."""
    parts = after_each(monkeypatch, lambda: None)
    words = ["train", "--data", str(squares / "labels.csv"), "-o", "encoding=binary", "--known", "0.6"]
    words += ["--method", "partial_bce", "--network", "pooled", "--backbone", "tiny", "--image-size", "64"]
    words += ["--epochs", "1", "--batch-size", "8", "--out", str(tmp_path / "run")]
    assert command(["sarb", *words, "--engine", "local", "--workers", "2"], monkeypatch) == 0
    assert sum(parts) == 36 + 12
    records = list((tmp_path / "cache" / "features").glob("*.json"))
    assert len(records) == 2  # training and test images
    for file in [*records, *records[0].parent.glob("*.npy")]:
        file.unlink()
    assert (
        command(
            [
                "sarb",
                "calibrate",
                str(tmp_path / "run"),
                "--engine",
                "local",
                "--folds",
                "2",
                "--workers",
                "2",
            ],
            monkeypatch,
        )
        == 0
    )
    assert "calibrated (platt)" in capsys.readouterr().err
    assert sum(parts) == 36 + 12 + 36  # the training images again
    assert len(list(records[0].parent.glob("*.npy"))) == 1
    assert command(["sarb", *words, "--no-cache", "--out", str(tmp_path / "plain")], monkeypatch) == 0
    assert command(["sarb", "calibrate", str(tmp_path / "plain"), "--engine", "local"], monkeypatch) == 2
    assert "this run was trained without it" in capsys.readouterr().err
