import shutil

import pytest

from sarb.data import load
from sarb.data.check.problems import DataWarning, gather
from sarb.data.readers.open_images import load_open_images
from sarb.errors import ConfigError, DataError
from tests.data.fixtures import write_image
from tests.data.formats import write_example

HEADER = "ImageID,Source,LabelName,Confidence\n"
NAME = "train-annotations-human-imagelabels.csv"


@pytest.fixture
def labels(tmp_path):
    """Return a function that writes a V4 training label file, with classes Cat, Dog and images a1, b2."""
    (tmp_path / "class-descriptions.csv").write_text("/m/01yrx,Cat\n/m/0bt9lr,Dog\n")
    for number, name in enumerate(("a1", "b2")):
        write_image(tmp_path / "train" / f"{name}.jpg", number, (8, 8))

    def write(rows, header=HEADER, name=NAME):
        (tmp_path / name).write_text(header + rows)
        return tmp_path

    return write


def test_classes_without_header_and_in_folders(labels):
    root = labels("a1,verification,/m/0bt9lr,1\nb2,verification,/m/01yrx,0\n")
    shutil.move(root / NAME, root / "train" / NAME)
    data = load_open_images(root)
    assert data.categories == ("Cat", "Dog")
    assert data.train.labels.values.tolist() == [[0, 1], [-1, 0]]
    assert data.train.root == root / "train"
    assert (data.train.line(1), data.train.source) == (3, root / "train" / NAME)
    single = load_open_images(root / "train" / NAME)
    assert single.train.labels == data.train.labels
    assert all(path.is_file() for path in single.train.paths)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("a1,verification,/m/0bt9lr,0.7", ["line 3", "'Confidence'", "'0.7'", "1 (verified present)"]),
        ("a1,verification,/m/0bt9lr,", ["line 3", "'Confidence'", "''"]),
        ("a1,verificaton,/m/0bt9lr,1", ["line 3", "'Source'", "Did you mean 'verification'?"]),
        ("a1,xclick,/m/0bt9lr,1", ["line 3", "'Source'", "'xclick'", "machine"]),
        ("a1,verification,/m/0bt9l,1", ["line 3", "'LabelName'", "'/m/0bt9l'", "Did you mean '/m/0bt9lr'?"]),
        ("a1,verification,/m/0bt9lr", ["line 3", "3 fields, but the header has 4"]),
        (",verification,/m/0bt9lr,1", ["line 3", "'ImageID'", "cannot be an image name"]),
        ("../a1,verification,/m/0bt9lr,1", ["line 3", "'ImageID'", "'../a1'"]),
        (
            "a1,verification,/m/01yrx,0",
            ["'Cat' is present on line 2 but absent on line 3", "-o conflict=unknown"],
        ),
    ],
)
def test_bad_rows(labels, row, words):
    root = labels(f"a1,verification,/m/01yrx,1\n{row}\nb2,verification,/m/01yrx,1\n")
    with pytest.raises(DataError) as error:
        load(f"open_images:{root}")
    for word in [NAME, *words]:
        assert word in str(error.value)
    with gather() as findings:
        data = load_open_images(root, check_files=False)
    assert findings.count("error") == (2 if "conflict" in words[-1] else 1)
    assert data.train.labels.values[:, 0].tolist()[:1] == [0 if "conflict" in words[-1] else 1]
    assert data.train.labels.paths[-1] == "b2.jpg"


@pytest.mark.parametrize(("conflict", "expected"), [("unknown", 0), ("present", 1), ("absent", -1)])
def test_conflict(labels, conflict, expected):
    root = labels("a1,verification,/m/01yrx,1\na1,verification,/m/01yrx,0\na1,verification,/m/0bt9lr,1.0\n")
    data = load_open_images(root, conflict=conflict)
    assert data.train.labels.values.tolist() == [[expected, 1]]
    assert data.notes["conflict"] == conflict


def test_machine_rows_are_not_knowledge(labels):
    root = labels("a1,verification,/m/01yrx,1\na1,machine,/m/0bt9lr,0.8\nb2,machine,/m/01yrx,1\n")
    data = load_open_images(root)
    assert (data.train.labels.paths, data.categories) == (("a1.jpg",), ("Cat",))
    assert data.notes["machine_rows"] == 2
    with pytest.raises(DataError, match=r"no verified labels: all 2 rows have Source=machine"):
        load_open_images(labels("a1,machine,/m/01yrx,1\nb2,machine,/m/01yrx,0.1\n"))


def test_categories_by_name_or_id(labels):
    root = labels("a1,verification,/m/01yrx,1\na1,verification,/m/0bt9lr,0\nb2,verification,/m/0bt9lr,1\n")
    data = load_open_images(root, categories="/m/0bt9lr,Cat")
    assert data.categories == ("Dog", "Cat")
    assert data.train.labels.values.tolist() == [[-1, 1], [1, 0]]
    (root / "mine.txt").write_text("Cat\n")
    data = load_open_images(root, categories="mine.txt")
    assert (data.train.labels.paths, data.notes["other_category_rows"]) == (("a1.jpg",), 2)
    with pytest.raises(DataError, match=r"'Catt' is not in the class descriptions. Did you mean 'Cat'\?"):
        load_open_images(root, categories="Catt")
    with pytest.raises(DataError, match="listed twice"):
        load_open_images(root, categories="Cat,/m/01yrx")


def test_a_name_of_two_classes(tmp_path):
    example = write_example("open_images", tmp_path)
    with pytest.raises(DataError, match=r"Choose Bishop \(/m/01b7b\) or Bishop \(/m/027k49j\)"):
        load(example.source, categories="Bishop")
    data = load(example.source, categories="/m/027k49j,Dog", check_files=False)
    assert data.categories == ("Bishop (/m/027k49j)", "Dog")
    assert data.train.labels.values.tolist() == [[0, 1], [-1, 0]]


def test_boxable_and_all_are_two_readings(labels):
    root = labels("a1,verification,/m/01yrx,1\nb2,verification,/m/0bt9lr,1\n")
    labels("a1,verification,/m/01yrx,0\n", name=NAME.replace(".csv", "-boxable.csv"))
    with pytest.raises(DataError) as error:
        load_open_images(root)
    for kind, name, rows in (("boxable", NAME.replace(".csv", "-boxable.csv"), 1), ("all", NAME, 2)):
        assert f"-o files={kind}: {root / name}, {rows} rows" in str(error.value)
    assert load_open_images(root, files="boxable").train.labels.values.tolist() == [[-1]]
    assert load_open_images(root, files="all").train.labels.values.tolist() == [[1, 0], [0, 1]]
    labels("", name=f"oidv6-{NAME}")
    with pytest.raises(DataError, match="several label files for train"):
        load_open_images(root, files="all")


def test_class_descriptions_are_chosen_plainly(labels):
    root = labels("a1,verification,/m/01yrx,1\n")
    (root / "class-descriptions-boxable.csv").write_text("/m/01yrx,Boxed cat\n")
    assert load_open_images(root).categories == ("Cat",)
    (root / "oidv6-class-descriptions.csv").write_text("LabelName,DisplayName\n/m/01yrx,Feline\n")
    with pytest.raises(DataError, match=r"several class descriptions.*-o descriptions=FILE"):
        load_open_images(root)
    assert load(f"open_images:{root}", descriptions="oidv6-class-descriptions.csv").categories == ("Feline",)
    for path in root.glob("*class-descriptions*"):
        path.unlink()
    with pytest.raises(
        DataError, match=r"no class-descriptions.csv; choose the file with -o descriptions=FILE"
    ):
        load_open_images(root)


def test_faults_of_class_descriptions(labels):
    root = labels("a1,verification,/m/01yrx,1\n")
    (root / "class-descriptions.csv").write_text("/m/01yrx,Cat\nDog\n/m/01yrx,Lion\n/m/1,\n")
    with gather() as findings:
        assert load_open_images(root).train.labels.values.tolist() == [[1]]
    assert [(finding.line, finding.kind) for finding in findings.of("error")] == [
        (2, "bad-row"),
        (3, "conflict"),
        (4, "bad-row"),
    ]
    assert "'/m/01yrx' is 'Lion' here and 'Cat' on line 1" in findings.of("error")[1].message


def test_images_that_were_not_downloaded(labels):
    root = labels("a1,verification,/m/01yrx,1\nc3,verification,/m/01yrx,0\nb2,verification,/m/01yrx,0\n")
    labels("d4,verification,/m/01yrx,0\n", name="validation-annotations-human-imagelabels.csv")
    with pytest.raises(DataError) as error:
        load(f"open_images:{root}")
    assert "1 of 3 images are not in" in str(error.value)
    assert "-o missing=skip" in str(error.value)
    with pytest.warns(DataWarning, match="1 of 1 images are not in .*none are left"):
        data = load(f"open_images:{root}", missing="skip", test=0.5)
    assert sorted((*data.train.labels.paths, *data.test.labels.paths)) == ["a1.jpg", "b2.jpg"]
    assert data.notes["missing_images"] == {"train": 1, "valid": 1}
    assert len(load(f"open_images:{root}", check_files=False, test=0).train) == 3
    shutil.rmtree(root / "train")
    with pytest.raises(DataError, match="3 of 3 images are not in"):
        load(f"open_images:{root}", missing="skip")


def test_images_elsewhere(labels):
    root = labels("a1,verification,/m/01yrx,1\n")
    (root / "images").mkdir()
    shutil.move(root / "train", root / "images" / "train")
    assert load_open_images(root).train.paths == [root / "images" / "train" / "a1.jpg"]
    shutil.move(root / "images", root / "pictures")
    assert load(f"open_images:{root}", root="pictures", test=0).train.paths == [
        root / "pictures" / "train" / "a1.jpg"
    ]


def test_an_image_in_two_splits(labels):
    root = labels("a1,verification,/m/01yrx,1\nb2,verification,/m/01yrx,1\n")
    labels("b2,verification,/m/01yrx,0\n", name="test-annotations-human-imagelabels.csv")
    with pytest.raises(DataError, match=rf"test-.*line 2: image 'b2' is also in .*{NAME}, line 3"):
        load(f"open_images:{root}", check_files=False)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("ImageID,Source,LabelName\n", "no column 'Confidence'"),
        ("ImageID,Source,Labelname,Confidence\n", "Did you mean 'Labelname'?"),
        ("ImageID;Source;LabelName;Confidence\n", "no column 'ImageID'"),
        ("ImageID,Source,LabelName,Confidence,XMin,XMax\n", "boxes, not image labels"),
        ("", "no column 'ImageID'"),
    ],
)
def test_bad_headers(labels, header, words):
    with pytest.raises(DataError) as error:
        load_open_images(labels("", header))
    assert words in str(error.value)
    assert NAME in str(error.value)


def test_no_label_file_and_wrong_options(labels):
    root = labels("a1,verification,/m/01yrx,1\n", name="test-annotations-human-imagelabels.csv")
    with pytest.raises(DataError, match=r"no train-annotations-human-imagelabels.csv"):
        load_open_images(root)
    with pytest.raises(ConfigError, match=r"value of option missing: 'skipp'. Did you mean 'skip'\?"):
        load_open_images(root, missing="skipp")
    with pytest.raises(ConfigError, match="value of option conflict"):
        load_open_images(root, conflict="maybe")
    with pytest.raises(ConfigError, match="value of option files"):
        load_open_images(root, files="some")
