import json

import pytest

from sarb.data.checks import DataWarning
from sarb.data.coco import load_coco
from sarb.errors import ConfigError, DataError
from tests.data.fixtures import COCO_CATEGORIES, write_coco, write_image

pytestmark = pytest.mark.filterwarnings("ignore::sarb.data.checks.DataWarning")


def expected(shown, categories):
    return [[1 if name in names else -1 for name in categories] for names in shown.values()]


def test_fixture_matrix_with_categories_by_ascending_id(tmp_path):
    shown = write_coco(tmp_path)
    with pytest.warns(DataWarning, match="train2014.*has 6 images, the official set has 82,783"):
        data = load_coco(tmp_path)
    assert data.categories == tuple(COCO_CATEGORIES.values())
    assert (len(data.categories), data.categories[0], data.categories[-1]) == (80, "person", "toothbrush")
    assert list(data.train.labels.paths) == list(shown["train"])
    assert data.train.labels.values.tolist() == expected(shown["train"], data.categories)
    assert data.test.labels.values.tolist() == expected(shown["test"], data.categories)
    assert all(path.is_file() for path in (*data.train.paths, *data.test.paths))
    assert data.train.root == tmp_path / "train2014"
    assert data.notes["images"] == "all"


def test_only_annotated_images(tmp_path):
    shown = write_coco(tmp_path)
    data = load_coco(tmp_path, images="annotated")
    kept = [file for file, names in shown["train"].items() if names]
    assert list(data.train.labels.paths) == kept and len(kept) == 4
    assert (data.train.labels.values == 1).any(axis=1).all()
    with pytest.raises(ConfigError, match=r"unknown value of option images: 'anotated'\. Did you mean 'annotated'"):
        load_coco(tmp_path, images="anotated")


@pytest.mark.parametrize("place", ["images", "images/train2014", "."])
def test_other_image_folders(tmp_path, place):
    write_coco(tmp_path)
    (tmp_path / place).mkdir(parents=True, exist_ok=True)
    for file in (tmp_path / "train2014").iterdir():
        file.rename(tmp_path / place / file.name)
    assert load_coco(tmp_path).train.root == tmp_path / place


def test_own_files_in_coco_format(tmp_path):
    categories = [{"id": 9, "name": "dog"}, {"id": 4, "name": "cat"}]
    for name, shown in (("a", [9]), ("b", [4, 9])):
        write_image(tmp_path / f"{name}.jpg")
        annotations = [{"image_id": name, "category_id": category} for category in shown]
        images = [{"id": name, "file_name": f"{name}.jpg"}]
        # annotations first: nothing may depend on the order of the keys
        text = json.dumps({"annotations": annotations, "images": images, "categories": categories})
        (tmp_path / f"{name}.json").write_text(text)
    data = load_coco(tmp_path, train_json="a.json", test_json="b.json")
    assert data.categories == ("cat", "dog")
    assert (data.train.labels.values.tolist(), data.test.labels.values.tolist()) == ([[-1, 1]], [[1, 1]])


def change(root, edit):
    path = root / "annotations" / "instances_train2014.json"
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda c: c["annotations"][0].update(image_id=5), "an annotation names image id 5, which is not in 'images'"),
        (lambda c: c["annotations"][0].update(category_id=12), "names category id 12, which is not in 'categories'"),
        (lambda c: c["annotations"][0].pop("image_id"), "an entry of 'annotations' has no 'image_id'"),
        (lambda c: c["images"].append("x"), "an entry of 'images' is not an object"),
        (lambda c: c["images"].append(c["images"][0]), "an entry of 'images' repeats id 6000"),
        (lambda c: c.pop("categories"), "'images' or 'categories' is missing or empty"),
        (lambda c: c["categories"][0].update(name="comb"), r"different categories: \['comb', 'toothbrush'\]"),
        (lambda c: c["images"][0].update(file_name="none.jpg"), "1 of 6 image files are missing in .*: none.jpg"),
    ],
)
def test_faults(tmp_path, edit, message):
    write_coco(tmp_path)
    change(tmp_path, edit)
    with pytest.raises(DataError, match=message) as error:
        load_coco(tmp_path)
    assert "instances_train2014.json" in str(error.value)


def test_bad_json_names_the_place(tmp_path):
    write_coco(tmp_path)
    (tmp_path / "annotations" / "instances_val2014.json").write_text('{"images": [\n{"id": 1,, }]}')
    with pytest.raises(DataError, match=r"instances_val2014\.json, line 2, column 10: not valid JSON"):
        load_coco(tmp_path)


def test_missing_files_and_other_years(tmp_path):
    write_coco(tmp_path, year=2017)
    with pytest.raises(
        DataError, match=r"instances_train2014\.json: no such annotation file.*There is .*see options year"
    ):
        load_coco(tmp_path)
    assert len(load_coco(tmp_path, year=2017).train) == 6
    (next((tmp_path / "train2017").iterdir())).unlink()
    with pytest.raises(DataError, match="1 of 6 image files are missing"):
        load_coco(tmp_path, year=2017)
    assert len(load_coco(tmp_path, year=2017, check_files=False).train) == 6
