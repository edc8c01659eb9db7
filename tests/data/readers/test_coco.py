import json

import pytest

from sarb.data import load
from sarb.data.check.problems import DataWarning, gather
from sarb.errors import ConfigError, DataError
from tests.data.fixtures import COCO_CATEGORIES, write_coco, write_image

pytestmark = pytest.mark.filterwarnings("ignore::sarb.data.check.problems.DataWarning")


def expected(shown, categories):
    return [[1 if name in names else -1 for name in categories] for names in shown.values()]


def test_fixture_matrix_with_categories_by_ascending_id(tmp_path):
    shown = write_coco(tmp_path)
    data = load(f"coco:{tmp_path}")
    assert data.categories == tuple(COCO_CATEGORIES.values())
    assert (len(data.categories), data.categories[0], data.categories[-1]) == (80, "person", "toothbrush")
    assert list(data.train.labels.paths) == list(shown["train"])
    assert data.train.labels.values.tolist() == expected(shown["train"], data.categories)
    assert data.test.labels.values.tolist() == expected(shown["test"], data.categories)
    assert all(path.is_file() for path in (*data.train.paths, *data.test.paths))
    assert data.train.root == tmp_path / "train2014" and data.train.name == "train2014"
    assert data.notes == {
        "images": "all",
        "annotations": ["instances_train2014.json", "instances_val2014.json"],
    }


def test_documented_numbers_are_checked_for_the_official_files_only(tmp_path):
    write_coco(tmp_path)
    with pytest.warns(DataWarning) as found:
        load(f"coco:{tmp_path}")
    train, val = (str(warning.message) for warning in found)
    assert train.startswith(
        f"{tmp_path}/annotations/instances_train2014.json: is not COCO train2014 as published: "
    )
    assert "6 images (documented: 82,783); 11 annotations (documented: 604,907); images showing " in train
    assert "images showing 'person' 0 (documented: 45,174), 'bicycle' 0 (documented: 2,287), 'car' 0" in train
    assert train.endswith(" and 77 more categories. Results cannot be compared with published ones")
    assert "3 images (documented: 40,504); 5 annotations (documented: 291,875). Results" in val
    with pytest.warns(DataWarning, match="annotated images as published: 4 images .documented: 82,081"):
        load(f"coco:{tmp_path}", images="annotated")


def test_only_annotated_images(tmp_path):
    shown = write_coco(tmp_path)
    data = load(f"coco:{tmp_path}", images="annotated")
    kept = [file for file, names in shown["train"].items() if names]
    assert list(data.train.labels.paths) == kept and len(kept) == 4
    assert (data.train.labels.values == 1).any(axis=1).all()
    with pytest.raises(
        ConfigError, match=r"unknown value of option images: 'anotated'\. Did you mean 'annotated'"
    ):
        load(f"coco:{tmp_path}", images="anotated")


@pytest.mark.parametrize("place", ["images", "images/train2014", "."])
def test_other_image_folders(tmp_path, place):
    write_coco(tmp_path)
    (tmp_path / place).mkdir(parents=True, exist_ok=True)
    for file in (tmp_path / "train2014").iterdir():
        file.rename(tmp_path / place / file.name)
    assert load(f"coco:{tmp_path}").train.root == tmp_path / place


def test_images_elsewhere(tmp_path):
    write_coco(tmp_path)
    (tmp_path / "train2014").rename(tmp_path / "elsewhere")
    for file in (tmp_path / "val2014").iterdir():
        file.rename(tmp_path / "elsewhere" / file.name)
    with pytest.raises(DataError, match=r"image files are missing in .*; add -o root=DIR"):
        load(f"coco:{tmp_path}")
    for root in ("elsewhere", tmp_path / "elsewhere"):
        assert load(f"coco:{tmp_path}", root=root).test.root == tmp_path / "elsewhere"


def small(images, annotations, categories=((9, "dog"), (4, "cat"))):
    """COCO's parts in few words, annotations first: nothing may depend on the order of the keys."""
    return {
        "annotations": [{"image_id": image, "category_id": category} for image, category in annotations],
        "images": [{"id": image, "file_name": name} for image, name in images],
        "categories": [{"id": number, "name": name} for number, name in categories],
    }


def write(path, content):
    """Write one entry per line; return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content).replace('}, {"', '},\n{"').replace('"images": [', '"images": [\n'))
    return path


def test_own_files_in_coco_format(tmp_path):
    for name, shown in (("a", [9]), ("b", [4, 9])):
        write_image(tmp_path / f"{name}.jpg")
        write(
            tmp_path / f"{name}.json",
            small([(name, f"{name}.jpg")], [(name, category) for category in shown]),
        )
    for source, options in (
        (tmp_path, {"train_json": "a.json", "test_json": "b.json"}),
        (tmp_path / "a.json", {"test_json": "b.json"}),
    ):
        data = load(f"coco:{source}", **options)
        assert data.categories == ("cat", "dog")
        assert (data.train.labels.values.tolist(), data.test.labels.values.tolist()) == ([[-1, 1]], [[1, 1]])
    with pytest.raises(ConfigError, match="remove option train_json"):
        load(f"coco:{tmp_path}/a.json", train_json="b.json")


@pytest.mark.parametrize("folder", [".", "images"])
def test_one_file_has_no_test_images_of_its_own(tmp_path, folder):
    images = [(number, f"{number}.jpg") for number in range(10)]
    for number, name in images:
        write_image(tmp_path / folder / name, number, (8, 8))
    path = write(
        tmp_path / "labels.json", small(images, [(number, 4 + 5 * (number % 2)) for number in range(10)])
    )
    for source, options in ((path, {}), (f"coco:{tmp_path}", {"train_json": "labels.json"})):
        data = load(source, **options)
        assert (len(data.train), len(data.test)) == (8, 2)
        assert data.notes["test_split"] == "random share 0.2, seed 0"
        assert (
            data.train.root == tmp_path / folder
            if source == path
            else data.train.root.samefile(tmp_path / folder)
        )
    with pytest.raises(DataError, match=r"image files are missing in .*nowhere"):
        load(path, root="nowhere")


def test_one_official_file_finds_its_images_in_the_official_layout(tmp_path):
    write_coco(tmp_path)
    data = load(f"coco:{tmp_path}/annotations/instances_val2014.json", test=0.34)
    assert data.train.root == tmp_path / "val2014" and (len(data.train), len(data.test)) == (2, 1)


IMAGES = [(1, "a.jpg"), (2, "b.jpg")]


def problems(path, content):
    """Load strictly and while gathering; return the data and (kind, line, message) of all errors."""
    write(path, content)
    for name in ("a", "b", "c"):
        write_image(path.parent / f"{name}.jpg", 0, (8, 8))
    with pytest.raises(DataError) as error:
        load(f"coco:{path}", test=0)
    with gather() as found:
        data = load(f"coco:{path}", test=0)
    errors = [(finding.kind, finding.line, finding.message) for finding in found.of("error")]
    assert [(f.kind, f.line, f.message) for f in error.value.findings] == errors
    assert str(path) in str(error.value)
    return data, errors


def test_all_faults_at_once_with_their_lines_and_the_rest_is_read(tmp_path):
    content = small([*IMAGES, (1, "c.jpg")], [(1, 9), (2, 4), (5, 9), (5, 4), (2, 12)])
    content["annotations"] += [{"image_id": 1}, {"image_id": [1], "category_id": 9}, 7]
    content["images"] += [
        {"id": None, "file_name": "c.jpg"},
        {"id": 3, "file_name": 3},
        {"id": 4.0, "file_name": "d"},
    ]
    content["categories"] += [{"id": True, "name": "x"}, {"id": 4, "name": "y"}, {"id": {}, "name": "z"}]
    data, found = problems(tmp_path / "a.json", content)
    assert found == [
        ("bad-entry", 6, "annotations[5] has no 'category_id'"),
        ("bad-entry", 7, "annotations[6] image_id is [1]; expected an integer or a string"),
        ("bad-entry", 7, "annotations[7] is not an object: 7"),
        ("bad-entry", 10, "images[2] repeats id 1 of 'a.jpg' on line 8"),
        ("bad-entry", 11, "images[3] id is None; expected an integer or a string"),
        ("bad-entry", 12, "images[4] file_name is 3; expected a string"),
        ("bad-entry", 13, "images[5] id is 4.0; expected an integer or a string"),
        ("bad-entry", 15, "categories[2] id is True; expected an integer or a string"),
        ("bad-entry", 16, "categories[3] repeats id 4 of 'cat' on line 14"),
        ("bad-entry", 17, "categories[4] id is {}; expected an integer or a string"),
        ("unknown-id", 3, "image id 5 is not in 'images' (2 times, first here)"),
        ("unknown-id", 5, "category id 12 is not in 'categories'"),
    ]
    assert data.train.labels.values.tolist() == [[-1, 1], [1, -1]] and data.categories == ("cat", "dog")


def test_an_image_or_category_under_two_ids(tmp_path):
    content = small([*IMAGES, (3, "a.jpg")], [(1, 9), (3, 5)], [(9, "dog"), (4, "cat"), (5, "cat")])
    data, found = problems(tmp_path / "a.json", content)
    assert found == [
        ("duplicate-name", 5, "images[2]: file_name 'a.jpg' has two ids, 1 and 3, on lines 3 and 5"),
        ("duplicate-name", 7, "categories[2]: category 'cat' has two ids, 4 and 5, on lines 6 and 7"),
    ]
    assert data.train.labels.paths == ("a.jpg", "b.jpg") and data.categories == ("cat", "dog")
    assert data.train.labels.values.tolist() == [[1, 1], [-1, -1]]


def test_a_repeated_annotation_is_one_label_and_ids_may_be_text(tmp_path):
    write_image(tmp_path / "a.jpg")
    path = write(
        tmp_path / "a.json",
        small([("x", "a.jpg")], [("x", "2"), ("x", "2")], [("2", "b"), (10, "a"), (9, "c")]),
    )
    data = load(f"coco:{path}", test=0)
    assert data.categories == ("c", "a", "b")  # numbers by value, then texts
    assert data.train.labels.values.tolist() == [[-1, -1, 1]]


def test_an_empty_list_of_annotations_is_a_statement(tmp_path):
    path = write(tmp_path / "a.json", small(IMAGES, []))
    with pytest.warns(DataWarning, match="nothing is marked as present"):
        data = load(f"coco:{path}", test=0, check_files=False)
    assert (data.train.labels.values == -1).all() and len(data.train) == len(IMAGES)


@pytest.mark.parametrize("part", ["images", "annotations", "categories"])
def test_a_part_is_missing(tmp_path, part):
    for lost in ({}, {part: []}, {part: None}, {part: {"a": 1}}):
        if lost == {"annotations": []}:
            continue
        content = {**{key: value for key, value in small(IMAGES, [(1, 9)]).items() if key != part}, **lost}
        with pytest.raises(DataError, match=f"a.json: '{part}' missing or empty"):
            load(f"coco:{write(tmp_path / 'a.json', content)}")
    with pytest.raises(DataError, match=r"a\.json, line 1: contains a JSON list"):
        load(f"coco:{write(tmp_path / 'a.json', [1])}")


def test_an_lvis_file_is_not_read_as_coco(tmp_path):
    content = small(IMAGES, [(1, 9)])
    content["images"][1]["neg_category_ids"] = [4]
    path = write(tmp_path / "a.json", content)
    with pytest.raises(
        DataError, match=r"a\.json, line 3: images\[1\] has neg_category_ids.*; read it as lvis:/"
    ):
        load(f"coco:{path}")


def test_other_categories_in_the_test_file(tmp_path):
    for name in ("a", "b"):
        write_image(tmp_path / f"{name}.jpg")
    write(tmp_path / "a.json", small([(1, "a.jpg")], [(1, 4)]))
    # other ids and another order for the same names: names count
    write(tmp_path / "b.json", small([(2, "b.jpg")], [(2, 1)], [(1, "dog"), (2, "cat")]))
    assert load(f"coco:{tmp_path}/a.json", test_json="b.json").test.labels.values.tolist() == [[-1, 1]]
    write(tmp_path / "b.json", small([(2, "b.jpg")], [(2, 1), (2, 2)], [(1, "dogs"), (2, "cat")]))
    message = (
        r"line 3: has different categories than .*a\.json; only here: dogs; only there: dog\. Did you mean"
    )
    with pytest.raises(DataError, match=message):
        load(f"coco:{tmp_path}/a.json", test_json="b.json")
    with gather() as found:
        data = load(f"coco:{tmp_path}/a.json", test_json="b.json")
    assert [finding.kind for finding in found.of("error")] == ["other-categories"]
    assert data.test.categories == ("cat", "dog") and data.test.labels.values.tolist() == [[1, -1]]


def test_bad_json_names_the_place(tmp_path):
    write_coco(tmp_path)
    (tmp_path / "annotations" / "instances_val2014.json").write_text('{"images": [\n{"id": 1,, }]}')
    with pytest.raises(DataError, match=r"instances_val2014\.json, line 2, column 10: not valid JSON"):
        load(f"coco:{tmp_path}")


def test_missing_files_and_other_years(tmp_path):
    write_coco(tmp_path, year=2017)
    source = f"coco:{tmp_path}"
    message = r"instances_train2014\.json: no such annotation file\. Found .*; see options year, train_json"
    with pytest.raises(DataError, match=message):
        load(source)
    assert len(load(source, year="2017").train) == 6
    (next((tmp_path / "train2017").iterdir())).unlink()
    with pytest.raises(DataError, match=r"1 of 6 image files are missing in .*train2017"):
        load(source, year=2017)
    assert len(load(source, year=2017, check_files=False).train) == 6
