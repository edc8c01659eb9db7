import json

import numpy as np
import pytest

from sarb.data.visual_genome import load_visual_genome, most_frequent
from sarb.errors import ConfigError, DataError
from tests.data.fixtures import write_image, write_visual_genome


def ranking(shown):
    """Slow and obvious: count images per name, most first, ties alphabetically."""
    names = sorted({name for names in shown.values() for name in names})
    return sorted(names, key=lambda name: -sum(name in found for found in shown.values()))


def test_builder_matrix(tmp_path):
    shown = write_visual_genome(tmp_path, images=9, categories=12)
    data = load_visual_genome(tmp_path, categories=5, test=3, seed=1)
    assert list(data.categories) == ranking(shown)[:5] == ["building", "ground", "tree", "head", "man"]
    ids = sorted(shown)
    held = sorted(ids[row] for row in np.random.RandomState(1).permutation(9)[:3])
    for dataset, images in ((data.test, held), (data.train, [image for image in ids if image not in held])):
        expected = [[1 if name in shown[image] else -1 for name in data.categories] for image in images]
        assert dataset.labels.values.tolist() == expected
        assert [path.stem for path in dataset.paths] == [str(image) for image in images]
        assert all(path.is_file() for path in dataset.paths)
    assert {path.parent.name for path in data.train.paths} == {"VG_100K", "VG_100K_2"}
    assert data.notes == {"categories": 5, "test": 3, "seed": 1, "aliases": None}


def test_another_seed_draws_other_test_images(tmp_path):
    write_visual_genome(tmp_path)
    first, second = (load_visual_genome(tmp_path, categories=5, test=3, seed=seed) for seed in (0, 1))
    assert first.test.labels.paths != second.test.labels.paths
    assert set(first.train.labels.paths) | set(first.test.labels.paths) == {
        *second.train.labels.paths,
        *second.test.labels.paths,
    }


def test_ties_are_broken_alphabetically():
    assert most_frequent([{"b", "c"}, {"c", "a"}, {"b", "a", "d"}], 3) == ["a", "b", "c"]


def write_objects(root, *images):
    """Write images 1, 2, … with these names; None leaves the image out of objects.json."""
    for number in range(1, len(images) + 1):
        write_image(root / "VG_100K" / f"{number}.jpg", number, (8, 8))
    data = [{"image_id": number, "url": f"http://x/VG_100K/{number}.jpg"} for number in range(1, len(images) + 1)]
    things = [
        {"image_id": number, "objects": [{"names": [name]} for name in names]}
        for number, names in enumerate(images, 1)
        if names is not None
    ]
    (root / "image_data.json").write_text(json.dumps(data))
    (root / "objects.json").write_text(json.dumps(things))


def test_frequency_counts_images_not_objects_and_names_are_cleaned(tmp_path):
    write_objects(tmp_path, ["cat", " Cat", "CAT", "cat"], ["dog", ""], ["dog "])
    data = load_visual_genome(tmp_path, categories=2, test=0)
    assert data.categories == ("dog", "cat")
    assert data.train.labels.values.tolist() == [[-1, 1], [1, -1], [1, -1]]


def test_aliases(tmp_path):
    write_objects(tmp_path, ["puppy"], ["Dog"], ["cat"], ["hound", "cat"])
    (tmp_path / "object_alias.txt").write_text("dog,puppy,hound\r\nkitten,puppy\n\n")
    data = load_visual_genome(tmp_path, categories=2, test=0, aliases="object_alias.txt")
    assert data.categories == ("dog", "cat")
    assert data.train.labels.values.tolist() == [[1, -1], [1, -1], [-1, 1], [1, 1]]
    assert data.notes["aliases"] == "object_alias.txt"
    with pytest.raises(DataError, match=r"none\.txt: cannot be read"):
        load_visual_genome(tmp_path, aliases="none.txt")


def test_an_image_nobody_described_is_unknown(tmp_path):
    write_objects(tmp_path, ["cat"], None, [])
    assert load_visual_genome(tmp_path, categories=1, test=0).train.labels.values.tolist() == [[1], [0], [-1]]


def test_impossible_numbers(tmp_path):
    write_visual_genome(tmp_path, images=9, categories=12)
    with pytest.raises(DataError, match="only 12 categories in it; add -o categories=12 or fewer"):
        load_visual_genome(tmp_path)
    with pytest.raises(DataError, match="9 images, cannot take 10000 of them"):
        load_visual_genome(tmp_path, categories=5)


def test_missing_pictures_and_faults(tmp_path):
    write_objects(tmp_path, ["cat"], ["dog"])
    (tmp_path / "VG_100K" / "2.jpg").unlink()
    with pytest.raises(DataError, match=r"1 of 2 image files are missing in VG_100K or VG_100K_2: 2\.jpg"):
        load_visual_genome(tmp_path, categories=2, test=1)
    (tmp_path / "objects.json").write_text('[{"image_id": 7, "objects": []}, {"objects": []}]')
    with pytest.raises(DataError, match=r"(?s)image id 7 is not in image_data.json.*no 'image_id'"):
        load_visual_genome(tmp_path)
    (tmp_path / "image_data.json").write_text('[{"url": ""}]')
    with pytest.raises(DataError, match="an entry has no image_id"):
        load_visual_genome(tmp_path)
    (tmp_path / "image_data.json").write_text("[{]")
    with pytest.raises(DataError, match=r"image_data\.json, line 1, column 3"):
        load_visual_genome(tmp_path)


@pytest.fixture
def published(tmp_path):
    for number in (1, 2, 3):
        write_image(tmp_path / "VG_100K" / f"{number}.jpg", number, (8, 8))
    (tmp_path / "train.txt").write_text("3.jpg\n1.jpg\n")
    (tmp_path / "test.txt").write_text("2.jpg\n")
    (tmp_path / "labels.json").write_text('{"1.jpg": [0, 2], "2.jpg": [1, 1], "3.jpg": []}')
    (tmp_path / "names.txt").write_text("cat\nhot dog\ntree\n")
    return tmp_path


LISTS = {"train_list": "train.txt", "test_list": "test.txt", "label_file": "labels.json"}


def test_published_lists(published):
    data = load_visual_genome(published, **LISTS, names="names.txt")
    assert data.categories == ("cat", "hot dog", "tree")
    assert data.train.labels.values.tolist() == [[-1, -1, -1], [1, -1, 1]]
    assert data.test.labels.values.tolist() == [[-1, 1, -1]]
    assert data.train.labels.paths == ("VG_100K/3.jpg", "VG_100K/1.jpg")
    assert load_visual_genome(published, **LISTS).categories[199] == "category 199"


def test_published_list_faults(published):
    with pytest.raises(ConfigError) as error:
        load_visual_genome(published, train_list="train.txt")
    assert error.value.problems == [f"published lists need option {name} too" for name in ("test_list", "label_file")]
    with pytest.raises(ConfigError, match="need option train_list"):
        load_visual_genome(published, names="names.txt")
    with pytest.raises(DataError, match=r"labels\.json: image '1\.jpg': category number 2 is not between 0 and 1"):
        load_visual_genome(published, **LISTS, categories=2)
    (published / "train.txt").write_text("9.jpg\n")
    with pytest.raises(DataError, match=r"no list for image '9\.jpg'"):
        load_visual_genome(published, **LISTS)
    (published / "labels.json").write_text("[1]")
    with pytest.raises(DataError, match="expected a JSON object"):
        load_visual_genome(published, **LISTS)
    (published / "labels.json").write_text('{"a":\n}')
    with pytest.raises(DataError, match="line 2, column 1"):
        load_visual_genome(published, **LISTS)
