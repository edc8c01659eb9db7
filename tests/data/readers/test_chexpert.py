import shutil

import numpy as np
import pytest

from sarb.data import load
from sarb.data.check.problems import DataWarning, gather
from sarb.data.readers.chexpert import FINDINGS, load_chexpert
from sarb.errors import ConfigError, DataError
from tests.data.fixtures import write_image
from tests.data.formats import write_example
from tests.data.formats.chexpert import HEADER, NAME, TRAIN, VALID

pytestmark = pytest.mark.filterwarnings("ignore:.*the official set has")
CELLS = ",Female,68,Frontal,AP" + 13 * ",0.0" + ",1.0\n"


@pytest.fixture
def home(tmp_path):
    """Return the folder of the example set."""
    write_example("chexpert", tmp_path)
    return tmp_path / NAME


def column(data, name):
    """Return the training labels of a finding."""
    return data.train.labels.values[:, FINDINGS.index(name)].tolist()


@pytest.mark.parametrize(("uncertain", "expected"), [("unknown", 0), ("present", 1), ("absent", -1)])
def test_uncertain(home, uncertain, expected):
    data = load_chexpert(home, uncertain=uncertain)
    assert column(data, "Consolidation") == [0, expected, expected]
    assert column(data, "Pneumothorax") == [-1, 0, -1]
    notes = {
        "uncertain": uncertain,
        "blank": "unknown",
        "view": "all",
        "uncertain_entries": 6,
        "blank_entries": 28,
    }
    assert notes.items() <= data.notes.items()


def test_blank(home):
    assert column(load_chexpert(home, blank="absent"), "Consolidation") == [-1, 0, 0]
    with pytest.raises(ConfigError, match="value of option blank: 'present'"):
        load_chexpert(home, blank="present")


@pytest.mark.parametrize(("view", "rows"), [("frontal", [0, 1]), ("lateral", [2])])
def test_view(home, view, rows):
    everything = load_chexpert(home)
    (home / "valid.csv").unlink()
    data = load_chexpert(home, view=view)
    assert np.array_equal(data.train.labels.values, everything.train.labels.values[rows])
    assert data.train.line(0) == rows[0] + 2


def test_view_is_a_known_word(home):
    (home / "train.csv").write_text(TRAIN.replace("Frontal,AP,1.0", "Frontl,AP,1.0"))
    assert len(load_chexpert(home).train) == 3
    with pytest.raises(DataError, match=r"train.csv, line 2, column 'Frontal/Lateral': value 'Frontl'"):
        load_chexpert(home, view="frontal")
    with pytest.raises(ConfigError, match=r"value of option view: 'side'"):
        load_chexpert(home, view="side")


def test_test_table_makes_valid_the_validation_split(home):
    # the published table of the test set: no other columns, another order, paths without the folder
    order = [*FINDINGS[1:], FINDINGS[0]]
    name = "test/patient64741/study1/view1_frontal.jpg"
    (home / "test.csv").write_text(f"Path,{','.join(order)}\n{name},{','.join(['1.0'] + 13 * ['0.0'])}\n")
    write_image(home / name, 9, (8, 8))
    data = load(f"chexpert:{home}")
    assert {split: len(part) for split, part in data.splits.items()} == {"train": 3, "valid": 1, "test": 1}
    assert data.categories == FINDINGS
    assert data.test.labels.values.tolist() == [[-1, 1] + 12 * [-1]]
    assert data.test.labels.paths == (f"{NAME}/{name}",)
    assert (data.notes["test_split"], data.notes["valid_split"]) == ("test.csv", "valid.csv")
    assert len(load(f"chexpert:{home}", view="frontal").test) == 1


def test_renamed_folder_moved_images_and_one_table(home, tmp_path):
    shutil.move(home, tmp_path / "xrays")
    data = load(f"chexpert:{tmp_path / 'xrays'}")
    assert data.train.root == tmp_path / "xrays"
    assert data.train.labels.paths[0] == "train/patient00001/study1/view1_frontal.jpg"
    table = tmp_path / "elsewhere" / "mine.csv"
    table.parent.mkdir()
    shutil.copy(tmp_path / "xrays" / "train.csv", table)
    with pytest.raises(DataError, match=r"3 of 3 image files are missing .*-o root=DIR"):
        load(f"chexpert:{table}")
    with pytest.warns(DataWarning, match="a patient may be in training and test"):
        data = load(f"chexpert:{table}", root=str(tmp_path / "xrays"), test=0)
    assert len(data.train) == 3


def test_parent_folder_is_given(home, tmp_path):
    assert load(f"chexpert:{tmp_path}").train.labels == load(f"chexpert:{home}").train.labels


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Edema,", "", ["no column 'Edema'", "-o categories="]),
        (
            "Edema",
            "Oedema",
            ["no column 'Edema'. Did you mean 'Oedema'?", "column 'Oedema'", "not one of the 14"],
        ),
        ("Support Devices", "Edema", ["column 'Edema' occurs twice", "no column 'Support Devices'"]),
        ("Path,", "path,", ["no column 'Path'", "Did you mean 'path'?"]),
        (",", ";", ["no column 'Path'"]),
    ],
)
def test_bad_headers(home, old, new, words):
    (home / "train.csv").write_text(TRAIN.replace(HEADER, HEADER.replace(old, new)))
    with pytest.raises(DataError) as error:
        load(f"chexpert:{home}")
    for word in ["train.csv", "line 1", *words]:
        assert word in str(error.value)


def test_categories_choose_columns(home):
    text = TRAIN.replace("Edema", "Fluid")
    (home / "train.csv").write_text(text)
    (home / "valid.csv").write_text(VALID.replace("Edema", "Fluid"))
    data = load_chexpert(home, categories="Fracture,Fluid", uncertain="present")
    assert data.categories == ("Fracture", "Fluid")
    assert data.train.labels.values.tolist() == [[0, 0], [1, 1], [1, 0]]
    with pytest.raises(DataError, match=r"no column 'Fluids'. Did you mean 'Fluid'\?"):
        load_chexpert(home, categories="Fluids")


def test_all_bad_cells_and_rows_at_once(home):
    text = TRAIN.replace("-1.0,1.0,,-1.0", "-2,1.0,,maybe").replace("Female,83,", "")
    (home / "train.csv").write_text(text)
    with gather() as findings:
        data = load_chexpert(home)
    errors = {(finding.line, finding.column, finding.value) for finding in findings.of("error")}
    assert errors == {(3, "Cardiomegaly", "-2"), (3, "Edema", "maybe"), (4, None, None)}
    assert "17 fields, but the header has 19" in next(f.message for f in findings.of("error") if f.line == 4)
    assert column(data, "Cardiomegaly") == [0, 0]


def test_patients_in_two_splits(home):
    shared = VALID.replace("patient64541", "patient00002")
    (home / "valid.csv").write_text(shared)
    with pytest.warns(
        DataWarning,
        match=r"valid.csv, line 2: 1 patient also in .* for example patient00002 \(there on line 3\)",
    ):
        load_chexpert(home)
    (home / "valid.csv").write_text(TRAIN)
    with pytest.raises(
        DataError, match=r"valid.csv: 3 problems\n  line 2: '.*/view1_frontal.jpg' is also in .*train.csv"
    ):
        load(f"chexpert:{home}")


def test_repeated_row(home):
    name = f"{NAME}/train/patient00001/study1/view1_frontal.jpg"
    (home / "train.csv").write_text(TRAIN + name + CELLS)
    with pytest.raises(DataError, match=r"lines 2 and 5; they disagree: 'No Finding' is present and absent"):
        load_chexpert(home)


def test_sizes_are_checked_in_a_folder_of_the_official_name(home, tmp_path):
    with pytest.warns(
        DataWarning, match=r"train.csv: CheXpert train has 3 images, the official set has 223,414"
    ):
        load_chexpert(home)
    shutil.move(home, tmp_path / "xrays")
    with gather() as findings:
        load_chexpert(tmp_path / "xrays")
    assert findings.count("warning") == 0


def test_no_table_or_no_row(home):
    (home / "train.csv").write_text(HEADER)
    with pytest.raises(DataError, match=r"train.csv: has a header but no rows"):
        load_chexpert(home)
    (home / "train.csv").unlink()
    with pytest.raises(DataError, match=r"contains no train.csv; to read only .*valid.csv, pass that file"):
        load_chexpert(home)
