import subprocess
import sys
from pathlib import Path

import pytest

import sarb.data
from sarb.data import DATASETS, Data, Dataset, load
from sarb.errors import ConfigError, DataError
from tests.data.fixtures import write_coco, write_visual_genome, write_voc, write_wide_csv

pytestmark = pytest.mark.filterwarnings("ignore::sarb.data.check.problems.DataWarning")


def options_reader(
    place: Path,
    *,
    number: int = 1,
    share: float | None = 0.5,
    flag: bool = False,
    folder: Path | None = None,
    word: str = "a",
    either: str | Path = "x",
) -> dict:
    return dict(locals())


def plain_reader(number: int = 3) -> int:
    return number


def nothing_reader() -> str:
    return "nothing"


@pytest.fixture
def readers(monkeypatch):
    monkeypatch.setitem(DATASETS, "options", f"{__name__}:options_reader")
    monkeypatch.setitem(DATASETS, "plain", f"{__name__}:plain_reader")
    monkeypatch.setitem(DATASETS, "nothing", f"{__name__}:nothing_reader")


def test_every_kind_of_source(tmp_path):
    write_wide_csv(tmp_path / "csv")
    write_coco(tmp_path / "coco")
    write_voc(tmp_path / "voc")
    write_visual_genome(tmp_path / "vg")
    table = tmp_path / "csv" / "labels.csv"
    for source in (str(table), table, f"table:{table}"):
        data = load(source, encoding="binary")
        assert isinstance(data, Data) and isinstance(data.train, Dataset) and len(data.categories) == 5
    for source in (f"coco:{tmp_path}/coco", tmp_path / "coco"):
        assert len(load(source).categories) == 80
    for source in (
        f"voc:{tmp_path}/voc",
        tmp_path / "voc",
        tmp_path / "voc/VOCdevkit",
        tmp_path / "voc/VOCdevkit/VOC2007",
    ):
        assert len(load(source, difficult="unknown").categories) == 20
    for source in (f"vg:{tmp_path}/vg", tmp_path / "vg"):
        assert len(load(source, categories="5", test="3").categories) == 5


def test_all_names_are_registered():
    assert set(DATASETS) == {
        "demo",
        "table",
        "list",
        "folder",
        "npy",
        "coco",
        "lvis",
        "voc",
        "vg",
        "open_images",
        "chexpert",
        "nus_wide",
        "label_studio",
        "cvat",
    }


def test_text_is_converted_by_the_annotated_type(readers, tmp_path):
    given = {"number": "7", "share": "0.25", "flag": "yes", "folder": "~x", "word": "1", "either": "2"}
    assert load(f"options:{tmp_path}", **given) == {
        "place": tmp_path,
        "number": 7,
        "share": 0.25,
        "flag": True,
        "folder": Path("~x"),
        "word": "1",
        "either": "2",
    }
    none = load(f"options:{tmp_path}", share="none", folder="None", flag="off", word="none")
    assert (none["share"], none["folder"], none["flag"], none["word"]) == (None, None, False, "none")
    typed = load(f"options:{tmp_path}", number=2, share=1, flag=True)
    assert (typed["number"], typed["share"], typed["flag"]) == (2, 1, True)


def test_wrong_options_are_reported_together(readers, tmp_path):
    with pytest.raises(ConfigError) as error:
        load(f"options:{tmp_path}", nubmer="1", number="x", share="y", flag="perhaps", place="z")
    problems = error.value.problems
    assert len(problems) == 5
    assert problems[0].startswith(
        "unknown option of source 'options': 'nubmer'. Did you mean 'number'? Available: "
    )
    assert problems[0].endswith(
        "check_files, either, excel_safe, flag, folder, number, outside, share, split_seed, test, valid, word"
    )
    assert problems[1] == "option number of source 'options' must be a whole number, got 'x'"
    assert problems[2] == "option share of source 'options' must be a number, got 'y'"
    assert problems[3] == "option flag of source 'options' must be true or false, got 'perhaps'"
    assert "'place'" in problems[4]


def test_sources_without_a_place(readers):
    assert load("plain", number="4") == 4
    assert load("nothing") == "nothing"
    with pytest.raises(DataError, match="source 'plain' takes no path, got 'x'"):
        load("plain:x")
    with pytest.raises(DataError, match="source 'coco' needs a path: coco:DIR"):
        load("coco")
    with pytest.raises(DataError, match="source 'table' needs a path: table:FILE"):
        load("table:")


def test_a_folder_named_like_a_reader_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_coco(tmp_path / "coco")
    assert len(load("coco").train) == 6


def test_unknown_sources(tmp_path):
    with pytest.raises(
        DataError,
        match=r"unknown data source 'ccoo'\. Did you mean 'coco'\? Available: chexpert, coco, cvat, demo",
    ):
        load(f"ccoo:{tmp_path}")
    with pytest.raises(
        DataError, match=r"demmo: no such file, folder or data source\. Did you mean 'demo'\?"
    ):
        load("demmo")
    with pytest.raises(DataError, match=r"none/labels\.csv: no such file, folder"):
        load("none/labels.csv")
    with pytest.raises(DataError, match=r"none: no such file or folder \(read as source 'voc'\)"):
        load("voc:none")
    with pytest.raises(DataError, match="unknown data source 'https'"):
        load("https://example.org/labels.csv")


def test_paths_that_cannot_be_told_apart(tmp_path):
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(DataError, match=r"cannot tell what this file is; name its reader, such as table:"):
        load(tmp_path / "notes.txt")
    with pytest.raises(DataError, match="not in a format that sarb knows"):
        load(tmp_path)
    write_wide_csv(tmp_path)
    with pytest.raises(DataError, match=r"It contains labels\.csv: try "):
        load(tmp_path)
    write_coco(tmp_path)
    write_voc(tmp_path)
    with pytest.raises(DataError, match="could be coco or voc; say which: coco:"):
        load(tmp_path)


def test_import_is_light():
    code = "import sys, sarb.data; "
    code += "print([m for m in ('torch', 'matplotlib', 'sklearn', 'PIL.Image') if m in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"
    assert set(sarb.data.__all__) == {"DATASETS", "Data", "Dataset", "load", "reader_name"}


def test_the_built_in_set_wins_over_a_folder_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(DATASETS, "demo", f"{__name__}:plain_reader")
    (tmp_path / "demo").mkdir()
    assert load("demo") == 3
    with pytest.raises(DataError, match="not in a format that sarb knows"):
        load("./demo")
