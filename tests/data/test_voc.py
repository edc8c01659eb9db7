import pytest

from sarb.data.checks import DataWarning
from sarb.data.voc import CATEGORIES, load_voc, read_objects
from sarb.errors import ConfigError, DataError
from tests.data.fixtures import write_voc

pytestmark = pytest.mark.filterwarnings("ignore::sarb.data.checks.DataWarning")


def expected(shown, difficult):
    """Slow and obvious: present if shown plainly, else the difficult rule, else absent."""
    rule = {"absent": -1, "unknown": 0, "present": 1}[difficult]
    return [[1 if c in names else rule if f"{c}?" in names else -1 for c in CATEGORIES] for names in shown.values()]


@pytest.mark.parametrize("xml", [True, False])
@pytest.mark.parametrize("difficult", ["absent", "unknown", "present"])
def test_fixture_matrix(tmp_path, xml, difficult):
    shown = write_voc(tmp_path, xml=xml)
    with pytest.warns(DataWarning, match="VOC 2007 trainval has 6 images, the official set has 5,011"):
        data = load_voc(tmp_path, difficult=difficult)
    assert data.categories == CATEGORIES == tuple(sorted(CATEGORIES)) and len(CATEGORIES) == 20
    assert data.train.labels.values.tolist() == expected(shown["trainval"], difficult)
    assert data.test.labels.values.tolist() == expected(shown["test"], difficult)
    assert data.train.labels.paths == tuple(f"{name}.jpg" for name in shown["trainval"])
    assert all(path.is_file() for path in (*data.train.paths, *data.test.paths))
    assert data.notes["difficult"] == difficult


@pytest.mark.parametrize("place", [".", "VOCdevkit", "VOCdevkit/VOC2007"])
def test_root_may_be_the_year_the_kit_or_its_parent(tmp_path, place):
    write_voc(tmp_path)
    assert load_voc(tmp_path / place).train.root == tmp_path / "VOCdevkit" / "VOC2007" / "JPEGImages"


def test_other_years_and_lists(tmp_path):
    write_voc(tmp_path)
    home = tmp_path / "VOCdevkit" / "VOC2007"
    assert len(load_voc(tmp_path, train="test", test="test").train) == 3
    with pytest.raises(DataError, match=r"val\.txt: no such list\. Lists there: test, trainval"):
        load_voc(tmp_path, test="val")
    home.rename(home.with_name("VOC2012"))
    with pytest.raises(DataError, match="There is VOC2012: add -o year=2012"):
        load_voc(tmp_path)
    assert len(load_voc(tmp_path, year=2012).train) == 6
    with pytest.raises(ConfigError, match="Did you mean 'absent'"):
        load_voc(tmp_path, difficult="abscent")


def write(path, text):
    path.write_text(text)
    return path


def test_objects_of_an_annotation(tmp_path):
    text = "<annotation><filename>a</filename><object><name> Dog </name><part><name>head</name></part></object>"
    path = write(tmp_path / "a.xml", text + "<object><difficult>1</difficult><name>cat</name></object></annotation>")
    assert read_objects(path) == [("dog", False), ("cat", True)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<annotation>\n<object></annotation>", "line 2, column 11: not valid XML, mismatched tag"),
        ("", "not valid XML, no element found"),
        ('<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><annotation>&b;</annotation>', "document type"),
        ('<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><annotation>&c;</annotation>', "document type"),
    ],
)
def test_bad_or_hostile_xml(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_objects(write(tmp_path / "a.xml", text))


def test_annotation_faults_are_reported_together(tmp_path):
    write_voc(tmp_path)
    folder = tmp_path / "VOCdevkit" / "VOC2007" / "Annotations"
    (folder / "000001.xml").unlink()
    write(folder / "000002.xml", "<annotation><object><name>dogg</name></object></annotation>")
    with pytest.raises(DataError) as error:
        load_voc(tmp_path)
    assert "000001.xml: cannot be read" in str(error.value)
    assert "000002.xml: unknown category 'dogg'. Did you mean 'dog'" in str(error.value)


def test_class_list_faults(tmp_path):
    write_voc(tmp_path, xml=False)
    lists = tmp_path / "VOCdevkit" / "VOC2007" / "ImageSets" / "Main"
    write(lists / "dog_trainval.txt", "000001  2\n000099  1\n")
    (lists / "cat_trainval.txt").unlink()
    with pytest.raises(DataError) as error:
        load_voc(tmp_path)
    assert "dog_trainval.txt, line 1: code '2'; expected 1, -1 or 0" in str(error.value)
    assert "dog_trainval.txt, line 2: image '000099' is not in trainval.txt" in str(error.value)
    assert "dog_trainval.txt: 0 images, trainval.txt has 6" in str(error.value)
    assert "no cat_trainval.txt, and no folder Annotations" in str(error.value)
    write(lists / "trainval.txt", "000001\n000002 1\n")
    with pytest.raises(DataError, match=r"trainval\.txt, line 2: 2 fields, expected 1"):
        load_voc(tmp_path)


def test_missing_pictures(tmp_path):
    write_voc(tmp_path)
    (tmp_path / "VOCdevkit" / "VOC2007" / "JPEGImages" / "000003.jpg").unlink()
    with pytest.raises(DataError, match=r"1 of 6 image files are missing in .*JPEGImages: 000003\.jpg"):
        load_voc(tmp_path)
    assert len(load_voc(tmp_path, check_files=False).train) == 6
