"""The benchmark of heat maps judges hand-made maps right, and the boxes are where the objects are."""

import numpy as np
import pytest
from benchmarks.heatmaps import Looked, inside, judge, main

import sarb
from sarb.data.demo.dataset import demo_boxes
from sarb.data.demo.scene import draw_scene, object_boxes, plan_scene, visible_shares
from tests.documentation.tools import hurry


def test_cells_inside_a_box():
    # a picture of 80 pixels, 4×4 cells of 20, centres at 10, 30, 50, 70
    exact = inside([(20, 40, 60, 60)], (4, 4), 80, 0)
    assert np.argwhere(exact).tolist() == [[2, 1], [2, 2]]
    near = inside([(20, 40, 60, 60)], (4, 4), 80, 1)
    assert np.argwhere(near).tolist() == [[row, column] for row in (1, 2, 3) for column in range(4)]
    two = inside([(0, 0, 20, 20), (60, 60, 80, 80)], (4, 4), 80, 0)
    assert np.argwhere(two).tolist() == [[0, 0], [3, 3]]
    assert not inside([(11, 11, 19, 19)], (4, 4), 80, 0).any()  # between the centres


def test_judge_counts_hits_chance_middle_and_the_other_map():
    maps = np.zeros((2, 4, 4), np.float32)
    maps[0, 0, 1] = maps[1, 3, 3] = 1
    first, second = judge(maps, [[(0, 0, 20, 20)], [(0, 0, 20, 20)]], 80)
    assert first == Looked(hit=True, strict=False, chance=4 / 16, middle=False, other=0)
    assert (second.hit, second.strict, second.other) == (False, False, 1)
    (alone,) = judge(maps[:1], [[(20, 0, 40, 20)]], 80)
    assert (alone.hit, alone.strict, alone.chance) == (True, True, 6 / 16)
    assert np.isnan(alone.other)


@pytest.mark.parametrize("index", range(6))
def test_boxes_are_tight_around_what_is_seen(index):
    size = 96
    scene = plan_scene(0, index, size)
    _, present, theme = draw_scene(0, index, size)
    boxes = object_boxes(scene.placed, size)
    assert {category for category, _ in boxes} == present
    assert scene.theme == theme
    shown = [
        item
        for item, share in zip(scene.placed, visible_shares(scene.placed, size), strict=True)
        if item.category and share >= 0.25
    ]
    for item, (_, (left, top, right, bottom)) in zip(shown, boxes, strict=True):
        canvas = np.zeros((3 * size, 3 * size), bool)
        drawn = np.asarray(item.patch.getchannel("A")) > 0
        row = item.top + size
        column = item.left + size
        canvas[row : row + drawn.shape[0], column : column + drawn.shape[1]] = drawn
        rows, columns = np.nonzero(canvas[size : 2 * size, size : 2 * size])
        assert left <= columns.min() and columns.max() < right
        assert top <= rows.min() and rows.max() < bottom
        assert 0 <= left < right <= size and 0 <= top < bottom <= size


def test_boxes_of_a_data_set_belong_to_its_labels(monkeypatch):
    hurry(monkeypatch)
    data = sarb.load("demo")
    for split, part in (("test", data.test), ("train", data.train)):
        found = demo_boxes(data, split, 5)
        assert len(found) == 5
        for boxes, row in zip(found, part.labels.values, strict=False):
            assert {name for name, _ in boxes} == {
                data.categories[index] for index in np.flatnonzero(row == 1)
            }


def test_it_runs(monkeypatch, capsys):
    hurry(monkeypatch)
    assert main(["--images", "6"]) in (0, 1)
    assert "heat maps (attention) on 6 demo test images" in capsys.readouterr().out
