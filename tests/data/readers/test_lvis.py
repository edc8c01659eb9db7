import json

import pytest

from sarb.data import load
from sarb.data.check.problems import DataWarning, gather
from sarb.errors import DataError
from tests.data.fixtures import write_image
from tests.data.formats.lvis import Described, example, write

pytestmark = pytest.mark.filterwarnings("ignore::sarb.data.check.problems.DataWarning")


def matrices(data):
    return {name: dataset.labels.values.tolist() for name, dataset in data.splits.items()}


def expected(written):
    return {split: list(rows.values()) for split, rows in written.splits.items()}


@pytest.mark.parametrize("annotations", [".", "annotations"])
@pytest.mark.parametrize("images", [".", "images", "coco", "../coco"])
def test_layouts(tmp_path, annotations, images):
    home = tmp_path / "lvis"
    written = example(home)
    for place, names in (
        (annotations, ("lvis_v1_train.json", "lvis_v1_val.json")),
        (images, ("train2017", "val2017")),
    ):
        (home / place).mkdir(parents=True, exist_ok=True)
        for name in names:
            (home / name).rename(home / place / name)
    data = load(f"lvis:{home}")
    assert data.train.root.resolve() == (home / images).resolve()
    assert matrices(data) == expected(written)
    assert data.notes == {"unlisted": "unknown", "annotations": ["lvis_v1_train.json", "lvis_v1_val.json"]}


def test_one_file_and_other_files(tmp_path):
    written = example(tmp_path)
    train = tmp_path / "lvis_v1_train.json"
    alone = load(train, test=0.34)
    assert (len(alone.train), len(alone.test)) == (2, 1) and alone.train.root == tmp_path
    both = load(train, test_json="lvis_v1_val.json")
    assert matrices(both) == expected(written)
    train.rename(tmp_path / "mine.json")
    with pytest.raises(DataError, match=r"lvis_v1_train\.json: no such annotation file\. Found lvis_v1_val"):
        load(f"lvis:{tmp_path}")
    assert matrices(
        load(f"lvis:{tmp_path}", train_json="mine.json", test_json="lvis_v1_val.json")
    ) == expected(written)
    (tmp_path / "train2017").rename(tmp_path / "val2017" / "train2017")
    moved = load(f"lvis:{tmp_path}", train_json="mine.json", root="val2017", test=0)
    assert moved.train.root == tmp_path / "val2017"


def test_documented_numbers(tmp_path):
    example(tmp_path)
    with pytest.warns(DataWarning) as found:
        load(f"lvis:{tmp_path}")
    train, val = (str(warning.message) for warning in found)
    assert train == (
        f"{tmp_path}/lvis_v1_train.json: is not LVIS v1 train as published: 3 images (documented: 100,170); "
        "3 annotations (documented: 1,270,141); 3 categories (documented: 1,203). "
        "Results cannot be compared with published ones"
    )
    assert "lvis_v1_val.json: is not LVIS v1 val as published: 2 images (documented: 19,809)" in val


def test_a_category_both_annotated_and_looked_for_in_vain(tmp_path):
    write_image(tmp_path / "train2017" / "000000000007.jpg")
    path = tmp_path / "a.json"
    write(path, {7: Described("train2017", [2, 1], [1], [])})
    with pytest.raises(
        DataError, match=r"line 2: .*'aerosol_can' is absent on line 1 but present on line 2"
    ) as error:
        load(f"lvis:{path}", test=0)
    assert [finding.kind for finding in error.value.findings] == ["conflict"]
    with gather() as found:
        data = load(f"lvis:{path}", test=0)
    assert data.train.labels.values.tolist() == [[0, 1, 0]] and found.count("error") == 1
    write(path, {7: Described("train2017", [2], [3], [3])})
    with pytest.raises(DataError, match="'air_conditioner' is absent on line 1 but present on line 1"):
        load(f"lvis:{path}", test=0)


def edit(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content).replace('}, {"', '},\n{"'))


@pytest.mark.parametrize(
    ("change", "line", "message"),
    [
        (lambda c: c["images"][1].pop("neg_category_ids"), 2, "images[1] has no 'neg_category_ids'"),
        (
            lambda c: c["images"][1].update(neg_category_ids=3),
            2,
            "neg_category_ids is 3; expected a list of ids",
        ),
        (
            lambda c: c["images"][1].update(neg_category_ids=[1, [2]]),
            2,
            "neg_category_ids[1] is [2]; expected an integer",
        ),
        (lambda c: c["images"][1].update(neg_category_ids=[9]), 2, "category id 9 is not in 'categories'"),
        (
            lambda c: c["images"][1].update(not_exhaustive_category_ids=None),
            2,
            "not_exhaustive_category_ids is None",
        ),
        (lambda c: c["images"][1].update(coco_url="x.jpg"), 2, "coco_url is 'x.jpg'; expected …/FOLDER/NAME"),
        (lambda c: c["images"][1].update(coco_url=5), 2, "coco_url is 5; expected a string"),
        (lambda c: c["images"][1].pop("coco_url"), 2, "images[1] has no 'coco_url'"),
        (
            lambda c: c["categories"][1].update(name="bow_(weapon)"),
            7,
            "category 'bow_(weapon)' has two ids, 1 and 2",
        ),
    ],
)
def test_faults(tmp_path, change, line, message):
    example(tmp_path)
    edit(tmp_path / "lvis_v1_train.json", change)
    with pytest.raises(DataError) as error:
        load(f"lvis:{tmp_path}")
    first = error.value.findings[0]
    assert (first.file, first.line) == (
        str(tmp_path / "lvis_v1_train.json"),
        line,
    ) and message in first.message


def test_version_half_has_file_names(tmp_path):
    def older(content):
        for image in content["images"]:
            image["file_name"] = image.pop("coco_url").rsplit("/", 1)[-1]

    written = example(tmp_path)
    edit(tmp_path / "lvis_v1_train.json", older)
    data = load(f"lvis:{tmp_path}/lvis_v1_train.json", root="train2017", test=0)
    assert [f"train2017/{name}" for name in data.train.labels.paths] == list(written.splits["train"])
