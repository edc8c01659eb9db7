import json

import numpy as np
import pytest

from sarb.data import load
from sarb.data.check.problems import DataWarning, gather
from sarb.errors import ConfigError, DataError
from tests.data.fixtures import write_image, write_visual_genome

pytestmark = pytest.mark.filterwarnings("ignore::sarb.data.check.problems.DataWarning")


def ranking(shown):
    """Slow and obvious: count images per name, most first, ties alphabetically."""
    names = sorted({name for names in shown.values() for name in names})
    return sorted(names, key=lambda name: -sum(name in found for found in shown.values()))


def test_builder_matrix(tmp_path):
    shown = write_visual_genome(tmp_path, images=9, categories=12)
    data = load(f"vg:{tmp_path}", categories="5", test="3", seed="1")
    assert list(data.categories) == ranking(shown)[:5] == ["building", "ground", "tree", "head", "man"]
    ids = sorted(shown)
    held = sorted(ids[row] for row in np.random.RandomState(1).permutation(9)[:3])
    for dataset, images in ((data.test, held), (data.train, [image for image in ids if image not in held])):
        expected = [[1 if name in shown[image] else -1 for name in data.categories] for image in images]
        assert dataset.labels.values.tolist() == expected
        assert [path.stem for path in dataset.paths] == [str(image) for image in images]
        assert all(path.is_file() for path in dataset.paths)
    assert {path.parent.name for path in data.train.paths} == {"VG_100K", "VG_100K_2"}
    notes = {"categories": 5, "test": 3, "seed": 1, "aliases": None, "test_split": "3 random images, seed 1"}
    assert data.notes == notes


def test_another_seed_draws_other_test_images(tmp_path):
    write_visual_genome(tmp_path)
    first, second = (load(f"vg:{tmp_path}", categories=5, test=3, seed=seed) for seed in (0, 1))
    assert first.test.labels.paths != second.test.labels.paths
    assert set(first.train.labels.paths) | set(first.test.labels.paths) == {
        *second.train.labels.paths,
        *second.test.labels.paths,
    }


def write_objects(root, *images):
    """Write images 1, 2, … with these names, one entry per line; None: no entry in objects.json."""
    for number in range(1, len(images) + 1):
        write_image(root / "VG_100K" / f"{number}.jpg", number, (8, 8))
    data = [
        {"image_id": number, "url": f"http://x/VG_100K/{number}.jpg"} for number in range(1, len(images) + 1)
    ]
    things = [
        {"image_id": number, "objects": [{"names": [name]} for name in names]}
        for number, names in enumerate(images, 1)
        if names is not None
    ]
    write(root / "image_data.json", data)
    write(root / "objects.json", things)


def write(path, entries):
    path.write_text("[" + ",\n".join(json.dumps(entry) for entry in entries) + "]")


def everything(data):
    """Image name -> labels, of all splits."""
    rows = [
        row
        for part in (data.train, data.test)
        for row in zip(part.labels.paths, part.labels.values, strict=True)
    ]
    return {name.rsplit("/", 1)[-1]: labels.tolist() for name, labels in sorted(rows, key=lambda row: row[0])}


def test_ties_are_broken_alphabetically(tmp_path):
    write_objects(tmp_path, ["b", "c"], ["c", "a"], ["b", "a", "d"])
    assert load(f"vg:{tmp_path}", categories=3, test=1).categories == ("a", "b", "c")


def test_frequency_counts_images_not_objects_and_names_are_cleaned(tmp_path):
    write_objects(tmp_path, ["cat", " Cat", "CAT", "cat"], ["dog", ""], ["dog "])
    data = load(f"vg:{tmp_path}", categories=2, test=1)
    assert data.categories == ("dog", "cat")
    assert everything(data) == {"1.jpg": [-1, 1], "2.jpg": [1, -1], "3.jpg": [1, -1]}


def test_aliases(tmp_path):
    write_objects(tmp_path, ["puppy"], ["Dog"], ["cat"], ["hound", "cat"])
    (tmp_path / "object_alias.txt").write_text("dog,puppy,hound\r\nkitten,puppy\n\n")
    for file in ("object_alias.txt", tmp_path / "object_alias.txt"):
        data = load(f"vg:{tmp_path}", categories=2, test=1, aliases=file)
        assert data.categories == ("dog", "cat")
        assert everything(data) == {"1.jpg": [1, -1], "2.jpg": [1, -1], "3.jpg": [-1, 1], "4.jpg": [1, 1]}
        assert data.notes["aliases"] == str(file)
    with pytest.raises(DataError, match=r"none\.txt: cannot be read"):
        load(f"vg:{tmp_path}", categories=2, test=1, aliases="none.txt")


def test_an_unused_file_of_aliases_is_said_with_both_options(tmp_path):
    write_objects(tmp_path, ["puppy"], ["Dog"], ["cat"], ["hound", "cat"])
    source = f"vg:{tmp_path}"
    with gather() as found:
        assert load(source, categories=2, test=1).categories == ("cat", "dog")
    assert "aliases" not in [finding.kind for finding in found.shown]  # no such file
    (tmp_path / "object_alias.txt").write_text("canine,dog,puppy,hound\n")
    with gather() as found:
        assert load(source, categories=2, test=1).categories == ("cat", "dog")
    (warning,) = (finding for finding in found.of("warning") if finding.kind == "aliases")
    assert warning.file == str(tmp_path / "object_alias.txt")
    assert warning.message.startswith("is not used; it would change 1 of the 2 categories.")
    assert "\n  -o aliases=object_alias.txt: " in warning.message
    assert "\n  -o aliases=none: " in warning.message
    for answer in ("object_alias.txt", "none", None):
        with gather() as found:
            data = load(source, categories=2, test=1, aliases=answer)
        assert "aliases" not in [finding.kind for finding in found.shown]
        assert data.categories == (("canine", "cat") if answer == "object_alias.txt" else ("cat", "dog"))


def test_an_image_nobody_described_is_unknown(tmp_path):
    write_objects(tmp_path, ["cat"], None, [])
    assert everything(load(f"vg:{tmp_path}", categories=1, test=1)) == {
        "1.jpg": [1],
        "2.jpg": [0],
        "3.jpg": [-1],
    }


def test_documented_number_of_images(tmp_path):
    write_objects(tmp_path, ["cat"], ["dog"])
    with pytest.warns(
        DataWarning, match=r"image_data\.json: is not Visual Genome as published: 2 images .*108,077"
    ):
        load(f"vg:{tmp_path}", categories=1, test=1)


def test_impossible_numbers(tmp_path):
    write_visual_genome(tmp_path, images=9, categories=12)
    source = f"vg:{tmp_path}"
    with pytest.raises(
        DataError, match=r"objects\.json: has only 12 categories; add -o categories=12 or fewer"
    ):
        load(source, test=3)
    for test in (10_000, 9, 0, -1):
        with pytest.raises(
            DataError, match=rf"image_data\.json: has 9 images, so {test} test images are not possible"
        ):
            load(source, categories=5, test=test)
    with pytest.raises(ConfigError, match="categories must be at least 1"):
        load(source, categories=0)
    with gather() as found:
        data = load(source)
    assert [finding.kind for finding in found.of("error")] == ["option", "option"] and len(
        data.categories
    ) == 12


def test_missing_pictures_and_images_elsewhere(tmp_path):
    write_objects(tmp_path, ["cat"], ["dog"])
    (tmp_path / "VG_100K" / "2.jpg").unlink()
    with pytest.raises(DataError, match=r"1 of \d image files are missing in .*: VG_100K/2\.jpg"):
        load(f"vg:{tmp_path}", categories=2, test=1)
    write_image(tmp_path / "pictures" / "VG_100K_2" / "2.jpg")
    (tmp_path / "VG_100K").rename(tmp_path / "pictures" / "VG_100K")
    for root in ("pictures", tmp_path / "pictures"):
        data = load(f"vg:{tmp_path}", categories=2, test=1, root=root)
        assert {*data.train.labels.paths, *data.test.labels.paths} == {"VG_100K/1.jpg", "VG_100K_2/2.jpg"}


def errors(root, **options):
    """Load strictly and while gathering; return the data and (line, message) of all errors of reading."""
    with pytest.raises(DataError):
        load(f"vg:{root}", **options)
    with gather() as found:
        data = load(f"vg:{root}", **options)
    return data, [(finding.line, finding.message) for finding in found.of("error")]


def test_faults_of_objects_are_found_at_once_and_the_rest_is_read(tmp_path):
    write_objects(tmp_path, ["cat"], ["dog"])
    good = json.loads((tmp_path / "objects.json").read_text())
    objects = [
        *good,
        {"image_id": 7, "objects": []},
        {"objects": []},
        {"image_id": [1], "objects": []},
        {"image_id": 1, "objects": {"names": ["x"]}},
        {"image_id": 1, "objects": [{"names": ["y"]}, {"names": "cat"}]},
        {"image_id": 1, "objects": [5]},
        {"image_id": 1, "objects": [{"names": [3]}]},
        None,
    ]
    write(tmp_path / "objects.json", objects)
    data, found = errors(tmp_path, categories=2, test=1)
    assert found == [
        (3, "[2]: image id 7 is not in image_data.json"),
        (4, "[3] has no 'image_id'"),
        (5, "[4] image_id is [1]; expected an integer or a string"),
        (6, "[5] objects is {'names': ['x']}; expected a list"),
        (7, "[6] objects[1] has no list of names: {'names': 'cat'}"),
        (8, "[7] objects[0] has no list of names: 5"),
        (9, "[8] objects[0] has no list of names: {'names': [3]}"),
        (10, "[9] is not an object: None"),
    ]
    assert everything(data) == {"1.jpg": [1, -1], "2.jpg": [-1, 1]}


def test_two_entries_of_an_image_are_joined_with_a_warning(tmp_path):
    write_objects(tmp_path, ["cat"], ["dog"])
    write(
        tmp_path / "objects.json",
        [{"image_id": i, "objects": [{"names": [n]}]} for i, n in ((1, "cat"), (1, "dog"))],
    )
    with gather() as found:
        data = load(f"vg:{tmp_path}", categories=2, test=1)
    warning = next(finding for finding in found.of("warning") if finding.kind == "duplicate-row")
    assert (warning.line, warning.message) == (
        2,
        "[1]: image id 1 also has an entry on line 1; both are read",
    )
    assert everything(data) == {"1.jpg": [1, 1], "2.jpg": [0, 0]}


def test_faults_of_the_list_of_images(tmp_path):
    write_objects(tmp_path, ["cat"], ["dog"])
    write(
        tmp_path / "image_data.json",
        [{"image_id": 1}, {"url": ""}, {"image_id": 2, "url": 5}, {"image_id": 1}],
    )
    data, found = errors(tmp_path, categories=1, test=0)
    assert found[:3] == [
        (2, "[1] has no 'image_id'"),
        (3, "[2] url is 5; expected a string"),
        (4, "[3] repeats image_id 1 from line 1"),
    ]
    assert everything(data) == {"1.jpg": [1]}
    (tmp_path / "image_data.json").write_text("[{]")
    with pytest.raises(DataError, match=r"image_data\.json, line 1, column 3"):
        load(f"vg:{tmp_path}")
    for name, text in (("image_data", "{}"), ("image_data", "[]"), ("objects", "[]")):
        write_objects(tmp_path, ["cat"], ["dog"])
        (tmp_path / f"{name}.json").write_text(text)
        with pytest.raises(DataError, match=rf"{name}\.json: contains no image"):
            load(f"vg:{tmp_path}")


def test_an_empty_folder(tmp_path):
    with pytest.raises(DataError, match=r"neither objects\.json with image_data\.json nor published lists"):
        load(f"vg:{tmp_path}")
