from __future__ import annotations

import csv
import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sarb.data.demo import dataset as demo
from sarb.data.demo import scene as demo_scene
from sarb.data.demo.clutter import CLUTTER
from sarb.data.demo.pen import PALETTE, Pen, distance, jitter, pick_paint
from sarb.data.demo.scene import Placed, present_categories, visible_shares
from sarb.data.demo.themes import THEMES
from sarb.data.demo.things import CATEGORIES, THINGS
from sarb.errors import ConfigError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SARB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def small(**options: int):
    return demo.load_demo(**{"train": 10, "test": 6, "size": 64, "processes": 1, **options})


def digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def square(category: str | None, side: int, left: int, top: int) -> Placed:
    return Placed(category, Image.new("RGBA", (side, side), (200, 10, 10, 255)), left, top)


# the set


def test_names_counts_and_notes():
    data = small()
    assert len(CATEGORIES) >= 24 and len(set(CATEGORIES)) == len(CATEGORIES)
    assert data.categories == CATEGORIES == tuple(sorted(CATEGORIES))
    assert (len(data.train), len(data.test), data.valid, data.name) == (10, 6, None, "demo")
    assert data.train.labels.known_share == data.test.labels.known_share == 1
    assert data.notes["seed"] == 0 and data.notes["size"] == 64


def test_images_decode_to_rgb_of_the_asked_size():
    data = small(size=72)
    for path in (*data.train.paths, *data.test.paths):
        with Image.open(path) as image:
            image.load()
            assert (image.format, image.mode, image.size) == ("JPEG", "RGB", (72, 72))


def test_labels_csv_is_the_wide_format_in_words(cache: Path):
    data = small()
    with (data.train.root / "labels.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["file_name", "split", *CATEGORIES]
    assert [row[1] for row in rows[1:]] == ["train"] * 10 + ["test"] * 6
    drawn = [demo_scene.draw_scene(0, index, 64)[1] for index in range(10)]
    expected = [["present" if name in found else "absent" for name in CATEGORIES] for found in drawn]
    assert [row[2:] for row in rows[1:11]] == expected
    assert [path.name for path in cache.iterdir()] == [data.train.root.name]
    assert sorted(path.name for path in data.train.root.iterdir()) == ["images", "labels.csv"]


def test_same_seed_same_bytes_with_one_and_two_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    one = digests(small().train.root)
    monkeypatch.setenv("SARB_CACHE", str(tmp_path / "other"))
    two = digests(small(processes=2).train.root)
    assert len(one) == 17 and one == two


def test_another_seed_gives_other_pictures():
    first = small()
    second = small(seed=1)
    assert first.train.root != second.train.root
    a = digests(first.train.root)
    b = digests(second.train.root)
    assert a.keys() == b.keys() and all(a[name] != b[name] for name in a)


def test_test_pictures_do_not_depend_on_the_number_of_training_pictures():
    first = small()
    second = small(train=12)
    for one, other in zip(first.test.paths, second.test.paths, strict=True):
        assert one.read_bytes() == other.read_bytes()
    train = {path.read_bytes() for path in second.train.paths}
    assert not train & {path.read_bytes() for path in second.test.paths}


def test_global_random_state_is_neither_read_nor_changed():
    np.random.seed(3)
    before = np.random.get_state()[1].copy()
    first = np.asarray(demo_scene.draw_scene(5, 1, 64)[0])
    assert np.array_equal(before, np.random.get_state()[1])
    np.random.seed(4)
    assert np.array_equal(first, np.asarray(demo_scene.draw_scene(5, 1, 64)[0]))


def test_wrong_settings_are_reported_all_at_once(cache: Path):
    with pytest.raises(ConfigError) as error:
        demo.load_demo(train=0, test=5, seed=-1, size=8)
    assert len(error.value.problems) == 3
    assert "train" in str(error.value) and "seed" in str(error.value) and "64" in str(error.value)
    assert not cache.exists()


# the cache


def test_second_call_does_not_draw_again(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    first = small()
    assert "16 images" in capsys.readouterr().err
    monkeypatch.setattr(demo, "draw_scene", lambda *_: pytest.fail("drawn again"))
    second = small()
    assert second.train.labels == first.train.labels and second.test.labels == first.test.labels
    assert capsys.readouterr().err == ""


def test_cache_of_another_version_is_not_used(monkeypatch: pytest.MonkeyPatch):
    folder = small().train.root
    monkeypatch.setattr(demo, "VERSION", demo.VERSION + 1)
    assert small().train.root != folder


@pytest.mark.parametrize("processes", [1, 2])
def test_interrupted_build_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch, processes: int):
    drawn = []

    def interrupt(seed: int, index: int, size: int):
        drawn.append(index)
        if len(drawn) == 4:
            raise KeyboardInterrupt
        return demo_scene.draw_scene(seed, index, size)

    monkeypatch.setattr(demo, "draw_scene", interrupt)
    with pytest.raises(KeyboardInterrupt):
        small(processes=processes)
    assert len(drawn) == 4 and list(cache.iterdir()) == []


def test_failing_helper_process_is_an_error_and_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", [])  # the helper cannot find sarb
    monkeypatch.setattr(sys, "executable", sys.executable)
    start = subprocess.Popen

    def isolated(command: list[str], **options):
        return start([command[0], "-S", "-E", *command[1:]], **options)

    monkeypatch.setattr(subprocess, "Popen", isolated)
    with pytest.raises(RuntimeError, match="drawing the demo set failed"):
        small(processes=2)
    assert list(cache.iterdir()) == []


def test_slower_of_two_builders_keeps_the_result_of_the_faster(cache: Path, monkeypatch: pytest.MonkeyPatch):
    write = demo._write_labels

    def meanwhile(folder: Path, settings: demo.Settings, processes: int) -> None:
        write(folder, settings, processes)
        monkeypatch.setattr(demo, "_write_labels", write)
        faster.append(digests(small().train.root))

    faster: list[dict[str, str]] = []
    monkeypatch.setattr(demo, "_write_labels", meanwhile)
    slower = small()
    assert faster == [digests(slower.train.root)]
    assert list(cache.iterdir()) == [slower.train.root]


def test_move_into_an_unusable_place_fails(tmp_path: Path):
    (tmp_path / "new").mkdir()
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "other.txt").write_text("not a data set")
    with pytest.raises(OSError):
        demo._move(tmp_path / "new", tmp_path / "old")


def test_old_left_overs_are_swept_and_young_ones_kept(cache: Path):
    for name in (".demo-old", ".demo-young"):
        (cache / name).mkdir(parents=True)
    long_ago = time.time() - 2 * demo.STALE_SECONDS
    os.utime(cache / ".demo-old", (long_ago, long_ago))
    small()
    assert not (cache / ".demo-old").exists() and (cache / ".demo-young").exists()


def test_helper_process_draws_its_part_only(tmp_path: Path):
    (tmp_path / "images").mkdir()
    demo.main([str(tmp_path), "3", "2", "0", "64", "1", "2"])
    assert sorted(path.name for path in (tmp_path / "images").iterdir()) == [
        "test_00000.jpg",
        "train_00001.jpg",
    ]
    assert (tmp_path / "part-1.json").exists()


# visibility


def test_visible_shares_of_a_hand_made_scene():
    placed = [
        square("cat", 20, 10, 10),  # its right half is under the car
        square("car", 20, 20, 10),
        square("key", 10, 70, 70),  # wholly under the box
        square("box", 20, 65, 65),
        square("fish", 20, 85, -10),  # 15 × 10 of 20 × 20 pixels inside the picture of 100
        square("bird", 10, 200, 200),  # outside
    ]
    assert visible_shares(placed, 100) == pytest.approx([0.5, 1, 0, 1, 0.375, 0])


def test_visible_shares_equal_a_slow_loop_over_pixels():
    rng = np.random.default_rng(0)
    placed = []
    for _ in range(6):
        alpha = rng.integers(0, 256, tuple(rng.integers(3, 12, 2))).astype(np.uint8)
        patch = Image.new("RGBA", alpha.shape[::-1])
        patch.putalpha(Image.fromarray(alpha))
        placed.append(Placed("cat", patch, int(rng.integers(-8, 20)), int(rng.integers(-8, 20))))
    expected = []
    for position, item in enumerate(placed):
        seen = total = 0.0
        for y in range(item.patch.height):
            for x in range(item.patch.width):
                own = item.patch.getpixel((x, y))[3] / 255
                total += own
                column = x + item.left
                row = y + item.top
                for above in placed[position + 1 :]:
                    u = column - above.left
                    v = row - above.top
                    if 0 <= u < above.patch.width and 0 <= v < above.patch.height:
                        own *= 1 - above.patch.getpixel((u, v))[3] / 255
                seen += own if 0 <= column < 20 and 0 <= row < 20 else 0
        expected.append(seen / total)
    assert visible_shares(placed, 20) == pytest.approx(expected, abs=1e-5)


def test_a_hidden_object_is_not_present_and_clutter_hides_too():
    cat = square("cat", 20, 10, 10)
    assert present_categories([cat, square(None, 20, 14, 10)], 64) == set()  # 4 of 20 columns are seen: 20 %
    assert present_categories([cat, square(None, 20, 16, 10)], 64) == {"cat"}  # 6 of 20: 30 %
    assert present_categories([square(None, 20, 14, 10), cat], 64) == {"cat"}  # behind it
    assert present_categories([cat, square(None, 20, 14, 10), square("cat", 9, 40, 40)], 64) == {
        "cat"
    }  # a second one
    assert present_categories([square("cat", 20, -16, 0)], 64) == set()  # the border hides as well


def test_labels_follow_what_was_placed(monkeypatch: pytest.MonkeyPatch):
    placed = [square("cat", 20, 5, 5), square("car", 30, 0, 0), square("fish", 10, 45, 45)]
    monkeypatch.setattr(demo_scene, "furnish", lambda *_: placed)
    image, categories, _ = demo_scene.draw_scene(0, 0, 64)
    assert categories == {"car", "fish"}
    red, green, blue = np.asarray(image)[50, 50].tolist()
    assert red > 2 * green and red > 2 * blue


# the drawings


@pytest.mark.parametrize("name", CATEGORIES)
def test_each_drawing_fills_its_square_and_varies_in_colour(name: str):
    colours = set()
    for seed in range(4):
        rng = np.random.default_rng(seed)
        pen = Pen(60, pick_paint(rng, (255, 255, 255)), rng)
        THINGS[name].draw(pen)
        pixels = np.asarray(pen.image)
        drawn = pixels[..., 3] > 0
        assert 0.08 < drawn.mean() < 0.9
        assert max(np.ptp(np.flatnonzero(drawn.any(axis))) for axis in (0, 1)) > 40
        colours.add(tuple(pixels[drawn][:, :3].mean(0).round()))
    assert len(colours) == 4


def test_symbols_exist_in_the_font():
    rng = np.random.default_rng(0)
    paint = pick_paint(rng, (0, 0, 0))

    def drawn(character: str) -> bytes:
        pen = Pen(60, paint, rng)
        pen.glyph(character, paint.main)
        return pen.image.tobytes()

    missing = drawn("\U0010fffd")  # a private character: what the font shows for a symbol it lacks
    symbols = "".join(thing.symbols for thing in THINGS.values())
    assert symbols and all(drawn(symbol) != missing for symbol in symbols)


def test_clutter_and_backgrounds_draw_something():
    rng = np.random.default_rng(0)
    for draw in CLUTTER:
        pen = Pen(60, pick_paint(rng, (255, 255, 255)), rng)
        draw(pen)
        assert np.asarray(pen.image)[..., 3].any()
    for theme in THEMES.values():
        pen = Pen(100, pick_paint(rng, (255, 255, 255)), rng)
        theme.background(pen, theme.horizon[0])
        assert (np.asarray(pen.image)[..., 3] == 255).all()


def test_paint_differs_from_the_background_and_between_its_parts():
    rng = np.random.default_rng(0)
    for background in PALETTE:
        paint = pick_paint(rng, background)
        assert distance(paint.main, background) >= 110 and distance(paint.main, paint.accent) >= 110
        assert all(0 <= value <= 255 for value in jitter(background, rng, 60))


# statistics


def test_themes_know_their_categories():
    assert 6 <= len(THEMES) <= 8
    assert sum(theme.share for theme in THEMES.values()) == pytest.approx(1)
    assert set().union(*(theme.likes for theme in THEMES.values())) == set(CATEGORIES)


def test_objects_of_a_theme_meet_and_strangers_are_few():
    rng = np.random.default_rng(0)
    office = [demo_scene.choose_categories(THEMES["office"], rng) for _ in range(2000)]
    counts = np.array([len(chosen) for chosen in office])
    assert counts.min() == 1 and counts.max() == 6 and 2.7 < counts.mean() < 3.3
    strangers = np.mean([name not in THEMES["office"].likes for chosen in office for name in chosen])
    assert 0.03 < strangers < 0.1


def test_categories_meet_as_their_themes_say():
    labels = small(train=90, test=1).train.labels
    present = (labels.values > 0).astype(float)
    both = present.T @ present
    by_chance = np.outer(present.mean(0), present.mean(0)) * len(present)
    homes = np.array([[name in theme.likes for theme in THEMES.values()] for name in CATEGORIES])
    together = (homes.astype(int) @ homes.T) > 0
    pairs = ~np.eye(len(CATEGORIES), dtype=bool)
    # all pairs are counted together, for one pair alone meets too seldom among 90 pictures
    assert both[together & pairs].sum() > 1.15 * by_chance[together & pairs].sum()
    assert both[~together & pairs].sum() < 0.5 * by_chance[~together & pairs].sum()
    assert 1 <= present.sum(1).max() <= 6
