import json
import shutil
import unicodedata

import pytest
from PIL import Image

from sarb.data.check.source import check
from sarb.errors import ConfigError
from tests.data.fixtures import write_image, write_voc


@pytest.fixture
def source(tmp_path):
    """Return a function that writes labels.csv; pictures a.png to f.png lie in images/."""
    for number, name in enumerate("abcdef"):
        write_image(tmp_path / "images" / f"{name}.png", number, (8, 8))

    def write(text, codec="utf-8"):
        (tmp_path / "labels.csv").write_bytes(text.encode(codec))
        return tmp_path / "labels.csv"

    return write


GOOD = "file_name,split,x,y\na.png,train,1,0\nb.png,train,0,1\nc.png,test,1,0\nd.png,test,0,1\n"


def found(checked, level=None):
    return [
        (item.kind, item.line, item.value) for item in checked.findings.shown if level in (None, item.level)
    ]


def test_nothing_is_wrong(source):
    checked = check(source(GOOD), encoding="binary")
    assert checked.ok and checked.opened == 4 and not checked.findings.shown
    head, summary = str(checked).split("\n\n")
    assert head.endswith("labels.csv: 4 images (train 2, test 2), 2 categories, 100.0 % of the labels known")
    assert summary == "no problems found: ready to train"
    assert checked.reading == {"encoding": "binary"}
    content = json.loads(checked.to_json())
    assert (content["ok"], content["images"], content["categories"]) == (
        True,
        {"train": 2, "test": 2},
        ["x", "y"],
    )


def test_everything_at_once(source):
    text = "\ufefffile_name,split,x,y,z\r\na.png,train,1,0,\r\nb.png,trian,1,7,\r\na.png,test,1,0,1\r\n"
    text += "c.png,test,1\r\n,test,1,1,1\r\n../none.png,test,1,-1,\r\nA.png,train,,,\r\n"
    checked = check(source(text), encoding="binary")
    assert not checked.ok
    assert found(checked, "error") == [
        ("bad-split", 3, "trian"),
        ("bad-row", 5, None),
        ("bad-value", 3, "7"),
        ("bad-value", 7, "-1"),
        ("split-overlap", 4, "a.png"),
        ("bad-name", 6, None),
        ("missing-file", 8, "A.png"),
        ("missing-file", 7, "../none.png"),
    ]
    assert {kind for kind, _, _ in found(checked, "note")} == {"bom"}
    assert {"image-without-label", "path-outside-root", "category-without-present"} <= {
        kind for kind, _, _ in found(checked, "warning")
    }
    text = str(checked)
    assert "error bad-value (2)\n" in text and "which differs in case" in text
    assert text.endswith("training would be wrong or impossible; fix the errors first")
    content = json.loads(checked.to_json())
    assert content["counts"]["error"] == 8 and content["findings"][0]["column"] == "split"


def test_an_undeclared_encoding_does_not_hide_the_rest(source):
    checked = check(source(GOOD + "none.png,test,1,0\n"))
    assert found(checked) == [("undeclared-encoding", None, None), ("missing-file", 6, "none.png")]
    assert "-o encoding=binary" in str(checked) and "known" not in str(checked).split("\n")[0]


def test_latin1_is_named_and_read_on(source):
    checked = check(source(GOOD + "é.png,test,7,0\n", "latin-1"), encoding="binary")
    assert found(checked, "error") == [
        ("not-utf8", 6, None),
        ("bad-value", 6, "7"),
        ("missing-file", 6, "é.png"),
    ]


def test_labels_that_teach_nothing(source):
    text = "file_name,split,x,y,z\na.png,train,1,1,\nb.png,train,1,0,\nc.png,test,0,1,\nd.png,test,,,\n"
    checked = check(source(text), encoding="binary")
    assert checked.ok
    assert found(checked) == [
        ("category-without-label", None, "z"),
        ("category-without-absent", None, "x"),
        ("category-without-present", None, "x"),
        ("category-without-absent", None, "y"),
        ("image-without-label", 5, "d.png"),
    ]
    assert "'z' has neither a present nor an absent label" in str(checked) and "-o ignore=z" in str(checked)


def test_each_split_without_labels_has_its_line(source):
    rows = "".join(f"{split}{n}.png,{split},,\n" for split in ("train", "test") for n in range(30))
    checked = check(
        source(f"file_name,split,x,y\na.png,train,1,0\n{rows}"), encoding="binary", open_images=False
    )
    assert checked.findings.counts["warning", "image-without-label"] == 60
    text = str(checked)
    assert "30 of 31 train images" in text and "30 of 30 test images" in text


def test_many_images_without_a_label_are_one_line(source):
    unknown = "".join(f"{name}.png,train,,\n" for name in "bcde")
    checked = check(source(f"file_name,split,x,y\na.png,train,1,0\n{unknown}"), encoding="binary", test=0)
    assert checked.findings.counts["warning", "image-without-label"] == 4
    assert str(checked).count("no known label") == 1 and "more" not in str(checked)
    assert "4 of 5 train images have no known label, first 'b.png'" in str(checked)
    only = check(source("file_name,split,x,y\na.png,train,1,\nb.png,test,1,0\n"), encoding="binary")
    assert ("no-absent", None, None) in found(only, "error")
    none = check(source("file_name,split,x,y\na.png,test,1,0\n"), encoding="binary")
    assert found(none, "error") == [("no-training-image", None, None)]


def test_unreadable_images_are_an_error_above_one_percent(source, tmp_path):
    (tmp_path / "images" / "b.png").write_bytes(b"not a picture")
    checked = check(source(GOOD), encoding="binary")
    assert found(checked) == [("unreadable-image", 3, "b.png")] and not checked.ok
    assert "not an image" in str(checked)
    assert check(source(GOOD), encoding="binary", open_images=False).ok
    rows = "".join(f"{n}.png,train,{n % 2},{1 - n % 2}\n" for n in range(120))
    for number in range(120):
        Image.new("RGB", (4, 4), (number, 0, 0)).save(tmp_path / "images" / f"{number}.png")
    checked = check(source(GOOD + rows), encoding="binary")
    assert checked.ok and found(checked, "warning") == [("unreadable-image", 3, "b.png")]


def test_the_same_picture_in_two_splits(source, tmp_path):
    images = tmp_path / "images"
    shutil.copy(images / "a.png", images / "d.png")
    Image.open(images / "b.png").save(images / "c.png", compress_level=0)  # other bytes, the same pixels
    checked = check(source(GOOD + "e.png,test,0,1\n"), encoding="binary")
    assert found(checked, "error") == [
        ("split-overlap-content", 4, "c.png"),
        ("split-overlap-content", 5, "d.png"),
    ]
    assert "'b.png' and 'c.png' (lines 3 and 4) are the same picture, in train and in test" in str(checked)
    shutil.copy(images / "a.png", images / "b.png")
    (images / "c.png").unlink()
    write_image(images / "c.png", 99, (8, 8))
    shutil.copy(images / "f.png", images / "d.png")
    checked = check(source(GOOD), encoding="binary")
    assert found(checked) == [("same-picture-conflict", 3, "b.png")] and checked.ok
    assert "contradicting labels in 2 categories" in str(checked)


def test_lists_that_share_an_image(tmp_path):
    write_voc(tmp_path)
    lists = tmp_path / "VOCdevkit" / "VOC2007" / "ImageSets" / "Main"
    with (lists / "test.txt").open("a") as file:
        file.write("000001\n")
    checked = check(f"voc:{tmp_path}", open_images=False)
    assert [kind for kind, _, _ in found(checked, "error")] == ["split-overlap"]
    assert "image '000001.jpg' is in train and in test" in str(checked)
    assert [kind for kind, _, _ in found(checked, "warning")][:1] == ["official-size"]


def test_paths_that_leave_the_folder(source, tmp_path):
    inside = tmp_path / "images" / "a.png"
    write_image(tmp_path / "out.png", 5)
    text = f"file_name,split,x,y\n{inside},train,1,0\nimages/../out.png,train,0,1\n"
    text += f"../{tmp_path.name}/out.png,test,1,0\n"
    checked = check(
        source(text + "C:\\a.png,test,0,1\n~/x..png,test,0,1\n"), encoding="binary", open_images=False
    )
    assert [line for kind, line, _ in found(checked) if kind == "path-outside-root"] == [2, 4, 5]


def test_names_in_another_unicode_form(source, tmp_path):
    nfc, nfd = (unicodedata.normalize(form, "é.png") for form in ("NFC", "NFD"))
    write_image(tmp_path / "images" / nfd, 9, (8, 8))
    checked = check(source(GOOD + f"{nfc},test,0,1\n"), encoding="binary")
    assert found(checked) == [("missing-file", 6, nfc)] and "NFC/NFD" in str(checked)


def test_sources_that_cannot_be_read(source, tmp_path):
    checked = check(tmp_path / "none.csv")
    assert not checked.ok and checked.data is None and "could not be read" in str(checked)
    broken = check(source('file_name,x\n"a.png,1\n'), encoding="binary")
    assert found(broken) == [("bad-csv", 2, None)]
    with pytest.raises(ConfigError, match="Did you mean 'encoding'"):
        check(source(GOOD), encodign="binary")


def test_the_limit_counts_the_rest(source):
    rows = "".join(f"{n}.png,test,9,9\n" for n in range(50))
    checked = check(source(GOOD + rows), encoding="binary", limit=3)
    assert checked.findings.counts["error", "bad-value"] == 100
    assert checked.findings.counts["error", "missing-file"] == 50
    assert str(checked).count("value '9'") == 3 and "… and 97 more" in str(checked)


def test_a_table_in_another_folder_than_its_images_gets_one_line(squares, tmp_path):
    rows = (squares / "labels.csv").read_text(encoding="utf-8").splitlines()
    moved = [f"{squares}/{row}" for row in rows[1:]]
    (tmp_path / "moved.csv").write_text("\n".join(["Bild" + rows[0][len("file_name") :], *moved, ""]))
    checked = check(str(tmp_path / "moved.csv"), file_column="Bild", encoding="binary")
    lines = [each for each in checked.findings.shown if each.kind == "path-outside-root"]
    assert len(lines) == 1 and lines[0].column == "Bild" and "so do all 48 names" in lines[0].message
