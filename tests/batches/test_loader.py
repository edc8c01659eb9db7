"""Batches, pictures and cached activations."""

from pathlib import Path

import numpy as np
import pytest
import torch

from sarb.batches.loader import Batch, Batches, CachedMaps, CachedViews, Pictures, check_readable, make_loader
from sarb.batches.prefetch import cores
from sarb.data.images import EvalTransform, TrainTransform, decode
from sarb.errors import ImageError


def indices(batches):
    return [[index for _, index in keys] for keys in batches]


def flat(batches):
    return [index for keys in indices(batches) for index in keys]


@pytest.fixture
def pictures(squares_data):
    train = squares_data.train
    return Pictures(train.paths, train.labels.values, [TrainTransform(32)], seed=5)


# Batches


@pytest.mark.parametrize(("size", "batch_size"), [(10, 3), (9, 3), (1, 4), (5, 1), (0, 4), (7, 100)])
@pytest.mark.parametrize("seed", [None, 0])
def test_every_index_comes_exactly_once(size, batch_size, seed):
    batches = Batches(size, batch_size, epoch=2, shuffle_seed=seed)
    found = indices(batches)
    assert sorted(flat(batches)) == list(range(size))
    assert len(found) == len(batches) and all(0 < len(keys) <= batch_size for keys in found)
    assert all(epoch == 2 for keys in batches for epoch, _ in keys)


def test_without_a_seed_the_order_is_that_of_the_data():
    assert indices(Batches(5, 2)) == [[0, 1], [2, 3], [4]]


@pytest.mark.parametrize("world", [1, 2])
def test_a_later_start_gives_the_rest_of_the_epoch(world):
    whole = Batches(21, 4, 3, 1, 0, world)
    for start in range(len(whole) + 1):
        rest = Batches(21, 4, 3, 1, 0, world, start)
        assert list(rest) == list(whole)[start:] and len(rest) == len(whole) - start


def test_the_order_depends_on_seed_and_epoch_only():
    first = flat(Batches(50, 8, 0, shuffle_seed=1))
    assert first != list(range(50))
    assert flat(Batches(50, 8, 0, shuffle_seed=1)) == first == flat(Batches(50, 3, 0, shuffle_seed=1))
    assert flat(Batches(50, 8, 1, shuffle_seed=1)) != first != flat(Batches(50, 8, 0, shuffle_seed=2))


@pytest.mark.parametrize("size", [1, 2, 12, 13, 14, 23])
@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("world", [2, 3])
def test_several_processes_share_the_batches_of_one(size, seed, world):
    whole = indices(Batches(size, 5, 4, seed))
    shares = [indices(Batches(size, 5, 4, seed, rank, world)) for rank in range(world)]
    assert {len(share) for share in shares} == {len(whole)}
    for number, (batch, *parts) in enumerate(zip(whole, *shares, strict=True)):
        sizes = [len(part) for part in parts]
        assert max(sizes) - min(sizes) <= 1 and min(sizes) > 0
        together = [index for part in parts for index in part]
        assert together[: len(batch)] == batch
        # more than the batch only if it has fewer images than there are processes
        assert len(together) == max(len(batch), world)
        extra = [Batches(size, 5, 4, seed, rank, world).stands_in(number) for rank in range(world)]
        assert extra == [rank >= len(batch) for rank in range(world)]


@pytest.mark.parametrize("size", [1, 4, 21, 40])
@pytest.mark.parametrize("world", [1, 2, 3, 7])
def test_the_shares_of_a_pass_are_the_pass(size, world):
    batches = Batches(size, 4)
    shares = [list(batches.share(rank, world)) for rank in range(world)]
    assert [keys for share in shares for keys in share] == list(batches)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert [len(batches.share(rank, world)) for rank in range(world)] == list(map(len, shares))


# Pictures


def test_a_picture_depends_on_seed_epoch_and_index_only(pictures):
    alone = pictures[[(1, 7)]].images[0]
    mixed = pictures[[(1, 3), (0, 7), (1, 7), (1, 8)]]
    assert torch.equal(mixed.images[2], alone)
    assert not torch.equal(mixed.images[1], alone), "another epoch, another crop"
    other = Pictures(pictures.sources, pictures.labels, pictures.transforms, seed=6)
    assert not torch.equal(other[[(1, 7)]].images[0], alone)


def test_a_picture_is_the_transform_with_the_generator_of_its_key(pictures):
    expected = TrainTransform(32)(decode(pictures.sources[4]), np.random.default_rng([5, 2, 4]))
    assert np.array_equal(pictures[[(2, 4)]].images[0].numpy(), expected)


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_threads_and_of_processes_are_those_of_a_plain_loop(pictures, workers, tmp_path):
    pictures.sources = list(pictures.sources)
    pictures.sources[7] = tmp_path / "none.jpg"
    batches = Batches(len(pictures), 10, epoch=3, shuffle_seed=0)
    loader = make_loader(pictures, batches, workers)
    plain, found = [pictures[keys] for keys in batches], list(loader)
    assert len(plain) == len(found) == len(loader) == 4
    for one, other in zip(plain, found, strict=True):
        assert torch.equal(one.images, other.images) and torch.equal(one.labels, other.labels)
        assert torch.equal(one.index, other.index) and one.failures == other.failures
    assert [index for batch in found for index, _ in batch.failures] == [7]
    assert torch.cat([batch.index for batch in found]).tolist() == [
        index for index in flat(batches) if index != 7
    ]


def test_an_error_that_is_no_broken_image_is_not_swallowed(pictures):
    def fail(image, random):
        raise ZeroDivisionError("a mistake in a transform")

    pictures.transforms = (fail,)
    with pytest.raises(ZeroDivisionError, match="a mistake in a transform"):
        list(make_loader(pictures, Batches(len(pictures), 4)))


def test_pictures_that_are_not_files_are_read_by_one_thread(pictures):
    image = decode(pictures.sources[0])
    assert Pictures(["a.jpg", Path("b.jpg")], pictures.labels, pictures.transforms).threads() == cores()
    assert Pictures(["a.jpg", image, image], pictures.labels, pictures.transforms).threads() == 1


@pytest.mark.parametrize(
    ("transforms", "expected"),
    [
        ([EvalTransform(32)], 64),
        ([EvalTransform(32), TrainTransform(24)], 96),
        ([EvalTransform(32), TrainTransform(24, draft=0)], None),
        ([EvalTransform(32), lambda image, random: np.zeros((3, 32, 32), np.float32)], None),
    ],
)
def test_an_image_is_decoded_large_enough_for_every_view(monkeypatch, squares_data, transforms, expected):
    asked = []
    monkeypatch.setattr(
        "sarb.batches.loader.decode", lambda source, draft=None: asked.append(draft) or decode(source)
    )
    train = squares_data.train
    Pictures(train.paths, train.labels.values, transforms)[[(0, 0)]]
    assert asked == [expected]


def test_labels_and_index_belong_to_the_pictures(pictures):
    batch = pictures[[(0, 3), (0, 0)]]
    assert batch.index.tolist() == [3, 0] and batch.index.dtype == torch.long
    assert batch.labels.tolist() == pictures.labels[[3, 0]].tolist()
    assert batch.images.shape == (2, 3, 32, 32) and batch.images.dtype == torch.float32
    assert not batch.frozen and batch.views == () and batch.failures == ()


def test_every_transform_makes_a_view_from_the_same_generator(squares_data):
    train, seen = squares_data.train, []

    def draw(image, random):
        seen.append(random.random())
        return np.full((3, 2, 2), seen[-1], np.float32)

    batch = Pictures(train.paths, train.labels.values, [draw, draw, draw], seed=1)[[(0, 0), (0, 1)]]
    assert len(batch.views) == 2 and all(view.shape == (2, 3, 2, 2) for view in batch.views)
    expected = np.random.default_rng([1, 0, 1]).random(3)
    assert [view[1, 0, 0, 0].item() for view in (batch.images, *batch.views)] == pytest.approx(expected)


def test_failures_are_listed_and_left_out(squares_data, tmp_path):
    train = squares_data.train.take([0, 1, 2])
    (tmp_path / "text.jpg").write_text("no picture")
    sources = [train.paths[0], tmp_path / "text.jpg", tmp_path / "none.jpg"]
    source = Pictures(sources, train.labels.values, [TrainTransform(16)])
    batch = source[[(0, 2), (0, 0), (0, 1)]]
    assert batch.index.tolist() == [0] and len(batch.images) == len(batch.labels) == 1
    assert [index for index, _ in batch.failures] == [2, 1]
    assert "none.jpg" in batch.failures[0][1] and "text.jpg" in batch.failures[1][1]
    nothing = source[[(0, 1), (0, 2)]]
    assert len(nothing.images) == len(nothing.index) == 0 and nothing.labels.shape == (0, 5)
    assert len(nothing.failures) == 2


# CachedMaps


def test_cached_maps_take_their_rows():
    activations = np.arange(6 * 2, dtype=np.float16).reshape(6, 2, 1, 1)
    labels = np.array([[1, 0], [0, -1], [-1, 1]], np.int8)
    source = CachedMaps(activations, labels, np.array([5, 0, 3]))
    batch = source[[(9, 2), (9, 0)]]
    assert len(source) == 3 and batch.frozen and batch.images.dtype == torch.float32
    assert batch.images.flatten(1).tolist() == [[6, 7], [10, 11]]
    assert batch.labels.tolist() == [[-1, 1], [1, 0]] and batch.index.tolist() == [2, 0]


def test_cached_maps_without_rows_are_all_of_them():
    activations = np.arange(3, dtype=np.float16).reshape(3, 1, 1, 1)
    batch = CachedMaps(activations, np.zeros((3, 1), np.int8))[[(0, 1), (0, 2)]]
    assert batch.images.flatten().tolist() == [1, 2]


def test_unreadable_rows_of_a_cache_are_listed_and_left_out():
    activations = np.arange(6, dtype=np.float16).reshape(6, 1, 1, 1)
    labels, rows = np.array([[1], [0], [-1]], np.int8), np.array([5, 0, 3])
    source = CachedMaps(
        activations, labels, rows, flip_seed=0, unreadable={3: "bad.jpg: broken", 4: "elsewhere"}
    )
    batch = source[[(0, 2), (0, 1), (0, 0)]]
    assert batch.failures == ((2, "bad.jpg: broken"),) and batch.index.tolist() == [1, 0]
    assert batch.images.flatten().tolist() == [0, 5] and batch.labels.tolist() == [[0], [1]]
    nothing = source[[(0, 2)]]
    assert (
        nothing.images.shape == (0, 1, 1, 1) and nothing.labels.shape == (0, 1) and len(nothing.failures) == 1
    )


@pytest.mark.parametrize(
    ("bad", "total", "stops"), [(1, 100, False), (1, 99, True), (2, 100, True), (57, 5700, False)]
)
def test_one_in_a_hundred_may_be_unreadable(bad, total, stops):
    reasons = [f"{number}.jpg: broken" for number in range(bad)]
    if not stops:
        check_readable(reasons, total)
        return
    with pytest.raises(ImageError, match=f"at least {bad} of {total} images cannot be read") as error:
        check_readable(reasons, total)
    assert "'sarb data check SRC'" in str(error.value) and str(error.value).endswith(
        f"\n  {bad - 1}.jpg: broken"
    )


def test_only_the_first_few_reasons_are_shown():
    with pytest.raises(ImageError) as error:
        check_readable(["a", "b", "c", "d", "e", "f", "g"], 10)
    assert str(error.value).splitlines()[1:] == ["  a", "  b", "  c", "  d", "  e"]


def test_cached_maps_need_no_workers():
    source = CachedMaps(np.zeros((4, 1, 1, 1), np.float16), np.zeros((4, 1), np.int8))
    loader = make_loader(source, Batches(4, 3), workers=2)
    assert loader.num_workers == 0 and [len(batch.index) for batch in loader] == [3, 1]


def test_to_moves_every_tensor():
    tensor = torch.zeros(1, 3, 2, 2)
    batch = Batch(tensor, torch.zeros(1, 4), torch.zeros(1, dtype=torch.long), (tensor,), True, ((3, "bad"),))
    moved = batch.to(torch.device("meta"))
    assert {t.device.type for t in (moved.images, moved.labels, moved.index, *moved.views)} == {"meta"}
    assert moved.frozen and moved.failures == batch.failures


def test_cached_maps_are_mirrored_by_seed_epoch_and_index_only():
    maps = np.random.default_rng(0).normal(size=(40, 2, 3, 4)).astype(np.float16)
    source = CachedMaps(maps, np.zeros((40, 1), np.int8), flip_seed=3)
    plain = maps.astype(np.float32)
    whole = source[[(1, index) for index in range(40)]].images.numpy()
    mirrored = [bool((whole[i] == plain[i, :, :, ::-1]).all()) for i in range(40)]
    assert all(mirrored[i] or (whole[i] == plain[i]).all() for i in range(40))
    assert 8 < sum(mirrored) < 32
    assert (source[[(1, 7), (1, 3)]].images.numpy() == whole[[7, 3]]).all()
    other = source[[(2, index) for index in range(40)]].images.numpy()
    assert not (other == whole).all()


def test_loading_leaves_the_global_generator_alone():
    source = CachedMaps(np.zeros((6, 1, 1, 1), np.float16), np.zeros((6, 1), np.int8))
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    assert len(list(make_loader(source, Batches(6, 2)))) == 3
    assert torch.equal(torch.rand(3), expected)


# CachedViews


def views_of(count, images=40):
    """View v of image i is filled with 100 v + i."""
    numbers = np.arange(images, dtype=np.float16).reshape(images, 1, 1, 1)
    return [
        np.broadcast_to(numbers + 100 * view, (images, 1, 2, 2)).astype(np.float16) for view in range(count)
    ]


def shown(source, epoch, positions=range(40)):
    """Number of the view of each image."""
    return [int(value) // 100 for value in source[[(epoch, index) for index in positions]].images[:, 0, 0, 0]]


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("first", [0, 3])
def test_each_view_is_shown_once_in_any_v_epochs(count, first):
    source = CachedViews(views_of(count), np.zeros((40, 1), np.int8), seed=1)
    table = np.array([shown(source, epoch) for epoch in range(first, first + count)])
    assert (np.sort(table, axis=0) == np.arange(count)[:, None]).all()
    if count > 1:
        assert len(set(table[0])) == count, "different images show different views"


def test_views_follow_from_seed_epoch_and_index_only():
    views, labels = views_of(3), np.zeros((40, 1), np.int8)
    one, same, other = (CachedViews(views, labels, seed) for seed in (4, 4, 5))
    for epoch in (0, 1, 7):
        assert shown(one, epoch) == shown(same, epoch) != shown(other, epoch)
        assert shown(one, epoch, [7, 3]) == [shown(one, epoch)[7], shown(one, epoch)[3]]


def test_views_are_whole_maps_of_the_right_image_and_never_mirrored():
    maps = [np.random.default_rng(view).normal(size=(9, 2, 3, 4)).astype(np.float16) for view in range(2)]
    labels = np.arange(9, dtype=np.int8)[:, None]
    source = CachedViews(maps, labels, 0, {5: "bad.jpg: broken"})
    for epoch in range(4):
        batch = source[[(epoch, index) for index in (8, 5, 0)]]
        assert (
            batch.frozen
            and batch.images.dtype == torch.float32
            and batch.failures == ((5, "bad.jpg: broken"),)
        )
        assert batch.index.tolist() == [8, 0] and batch.labels.tolist() == [[8], [0]]
        expected = [maps[source.order[index, epoch % 2]][index] for index in (8, 0)]
        assert np.array_equal(batch.images.numpy(), np.stack(expected).astype(np.float32))


def test_a_read_only_map_is_neither_copied_nor_warned_about(tmp_path, recwarn):
    np.save(tmp_path / "maps.npy", np.ones((3, 1, 2, 2), np.float16))
    stored = np.load(tmp_path / "maps.npy", mmap_mode="r")
    source = CachedViews([stored], np.zeros((3, 1), np.int8), 0)
    assert np.shares_memory(source.views[0], stored)
    source[[(0, 0)]].images.zero_()
    assert (stored == 1).all() and not recwarn.list
