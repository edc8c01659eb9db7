"""Shared by all tests: a cache folder of their own, one thread, and a tiny data set of coloured squares."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from PIL import Image, ImageDraw

from tests import skips

COLOURS = {
    "red": (220, 40, 40),
    "green": (40, 200, 60),
    "blue": (50, 70, 230),
    "yellow": (240, 220, 50),
    "white": (250, 250, 250),
}
TRAIN, TEST = 36, 12
#: the real Label Studio and other large packages: `make extras` installs and tests them
collect_ignore = [] if os.environ.get("SARB_EXTRAS") else ["extras"]

# A busy machine makes a test slow, not wrong. The parent holds what Hypothesis sets by itself in CI.
settings.register_profile(
    "patient", parent=settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("patient")


def pytest_configure(config):
    skips.register(config, Path(__file__).with_name("allowed_skips.txt"))


@pytest.fixture(scope="session", autouse=True)
def own_cache_and_one_thread(tmp_path_factory):
    """One cache for the session, so that a generated data set is made once; never the user's own."""
    import torch

    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SARB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def squares(tmp_path_factory):
    """Folder with 48 JPEGs of 64×64 (1 to 3 coloured squares each) and ``labels.csv`` in encoding binary."""
    return draw_squares(tmp_path_factory.mktemp("squares"), TRAIN, TEST)


def draw_squares(folder, train, test):
    """Draw the squares into a folder and return it."""
    random = np.random.RandomState(0)
    names = list(COLOURS)
    with (folder / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["file_name", "split", *names])
        for number in range(train + test):
            # every colour is sure to occur in both splits
            shown = {names[number % len(names)], *random.choice(names, random.randint(0, 3), replace=False)}
            _draw(sorted(shown), random).save(folder / f"{number:02d}.jpg", quality=90)
            split = "train" if number < train else "test"
            writer.writerow([f"{number:02d}.jpg", split, *(int(name in shown) for name in names)])
    return folder


def _draw(shown, random):
    picture = Image.new("RGB", (64, 64), tuple(int(value) for value in random.randint(20, 70, 3)))
    draw = ImageDraw.Draw(picture)
    for place, colour in zip(random.permutation(9), shown, strict=False):
        left, top = int(place) % 3 * 21 + random.randint(0, 5), int(place) // 3 * 21 + random.randint(0, 5)
        side = random.randint(12, 17)
        draw.rectangle((left, top, left + side, top + side), fill=COLOURS[colour])
    return picture


@pytest.fixture(scope="session")
def squares_data(squares):
    """The squares as Data: 36 training images, 12 test images, 5 categories, every label known."""
    import sarb

    return sarb.load(squares / "labels.csv", encoding="binary")


@pytest.fixture(scope="session")
def cluster():
    """A Ray cluster with two processors and little memory; started once, since that takes seconds."""
    ray = pytest.importorskip("ray", reason="needs the extra [ray]: pip install 'sarb[ray]'")
    # the workers must find this package and the tests, wherever a test has moved to
    paths = [str(Path(__file__).parents[1]), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_BACKEND_LOG_LEVEL", "fatal")
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=100 << 20,
            log_to_driver=False,
            configure_logging=False,
            runtime_env={"env_vars": {"PYTHONPATH": os.environ["PYTHONPATH"]}},
        )
        yield ray
        ray.shutdown()
