"""Names that lead out of the image folder are counted, or refused with file, line and column."""

import pytest

import sarb
from sarb.data.check.outside import leaves
from sarb.data.check.source import check
from sarb.errors import ConfigError, DataError, DataNote
from tests.data.fixtures import write_image


@pytest.fixture
def table(tmp_path):
    root = tmp_path / "photos"
    for file in (root / "in.jpg", root / "b" / "in.jpg", tmp_path / "out.jpg", tmp_path / "far.jpg"):
        write_image(file, 1, (8, 8))
    (root / "link.jpg").symlink_to(tmp_path / "far.jpg")
    rows = ["in.jpg,1,0", "../out.jpg,0,1", f"{tmp_path}/out.jpg,1,1", "b/../b/in.jpg,0,0", "link.jpg,1,0"]
    (root / "labels.csv").write_text("\n".join(["file_name,cat,dog", *rows, ""]))
    return root / "labels.csv"


@pytest.mark.parametrize(("name", "out"), [("a.jpg", False), ("a..b.jpg", False), ("x/../a.jpg", False)])
def test_ordinary_names_stay(name, out):
    assert bool(leaves(name)) == out


@pytest.mark.parametrize("name", ["/a.jpg", "../a.jpg", "x/../../a.jpg", "..\\a.jpg", "C:\\a.jpg", ".."])
def test_names_that_leave(name):
    assert leaves(name)


def test_they_are_allowed_and_counted_in_one_line(table):
    with pytest.warns(DataNote, match=r"2 of 5 image paths are absolute or lead outside .*photos") as said:
        data = sarb.load(table, encoding="binary")
    assert len(data.all) == 5
    assert len([note for note in said if "lead outside" in str(note.message)]) == 1


def test_refuse_names_file_line_and_column_and_links_too(table):
    with pytest.raises(DataError) as error:
        sarb.load(table, encoding="binary", outside="refuse")
    text = str(error.value)
    for line, name in ((3, "../out.jpg"), (4, "out.jpg' is an absolute path"), (6, "link.jpg")):
        assert any(f"line {line}, column 'file_name'" in each and name in each for each in text.splitlines())
    assert "3 problems" in text and "line 5" not in text


def test_data_check_opens_nothing_that_was_refused(table, tmp_path):
    for name in ("out.jpg", "far.jpg"):
        (tmp_path / name).write_bytes(b"opening this would be another error")
    found = check(table, encoding="binary", outside="refuse").findings
    assert found.counts["error", "path-outside-root"] == 3
    assert {kind for level, kind in found.counts if level == "error"} == {"path-outside-root"}


def test_a_wrong_value_is_named(table):
    with pytest.raises(ConfigError, match="outside"):
        sarb.load(table, encoding="binary", outside="deny")


def test_no_folder_elsewhere_is_listed_for_a_hint(table, tmp_path):
    table.write_text("file_name,cat,dog\n../ou.jpg,1,0\nin.jpg,0,1\n")
    with pytest.raises(DataError) as error:
        sarb.load(table, encoding="binary")
    assert "out.jpg" not in str(error.value)
