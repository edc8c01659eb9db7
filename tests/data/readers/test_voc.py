import pytest

from sarb.data import load
from sarb.data.check.official import VOC_2007
from sarb.data.check.problems import DataWarning, gather
from sarb.data.readers.voc import CATEGORIES, Thing, read_objects
from sarb.errors import ConfigError, DataError
from tests.data.fixtures import write_voc

pytestmark = pytest.mark.filterwarnings("ignore::sarb.data.check.problems.DataWarning")


def expected(shown, difficult):
    """Slow and obvious: present if shown plainly, else the difficult rule, else absent."""
    rule = {"absent": -1, "unknown": 0, "present": 1}[difficult]
    return [
        [1 if c in names else rule if f"{c}?" in names else -1 for c in CATEGORIES]
        for names in shown.values()
    ]


@pytest.mark.parametrize("xml", [True, False])
@pytest.mark.parametrize("difficult", ["absent", "unknown", "present"])
def test_fixture_matrix(tmp_path, xml, difficult):
    shown = write_voc(tmp_path, xml=xml)
    data = load(f"voc:{tmp_path}", difficult=difficult)
    assert data.categories == CATEGORIES == tuple(sorted(CATEGORIES)) and len(CATEGORIES) == 20
    assert data.train.labels.values.tolist() == expected(shown["trainval"], difficult)
    assert data.test.labels.values.tolist() == expected(shown["test"], difficult)
    assert data.train.labels.paths == tuple(f"{name}.jpg" for name in shown["trainval"])
    assert all(path.is_file() for path in (*data.train.paths, *data.test.paths))
    assert data.notes == {"difficult": difficult, "lists": ["trainval", "test"]}
    assert (data.train.name, data.test.line(2)) == ("trainval", 3)


def test_documented_numbers_leave_difficult_objects_out(tmp_path, monkeypatch):
    shown = write_voc(tmp_path)
    for difficult in ("absent", "unknown"):
        with pytest.warns(DataWarning) as found:
            load(f"voc:{tmp_path}", difficult=difficult)
        train, test = (str(warning.message) for warning in found)
        assert train.startswith(
            f"{tmp_path}/VOCdevkit/VOC2007/ImageSets/Main/trainval.txt: is not VOC 2007 trainval "
        )
        assert (
            "6 images (documented: 5,011); images showing 'aeroplane' 1 (documented: 238), 'bicycle' 1"
            in train
        )
        assert "3 images (documented: 4,952); images showing 'aeroplane' 0 (documented: 204)" in test
    # a set with the documented numbers: silent, unless difficult objects count
    for split, images in shown.items():
        count = tuple(sum(category in names for names in images.values()) for category in CATEGORIES)
        exact = VOC_2007[split].__class__(split, len(images), 20, 0, count)
        monkeypatch.setitem(VOC_2007, split, exact)
    with gather() as found:
        load(f"voc:{tmp_path}", difficult="absent")
        load(f"voc:{tmp_path}", difficult="present")
    assert not found.of("warning")


@pytest.mark.parametrize("place", [".", "VOCdevkit", "VOCdevkit/VOC2007"])
def test_place_may_be_the_year_the_kit_or_its_parent(tmp_path, place):
    write_voc(tmp_path)
    assert load(f"voc:{tmp_path / place}").train.root == tmp_path / "VOCdevkit" / "VOC2007" / "JPEGImages"


def test_other_years_and_lists(tmp_path):
    write_voc(tmp_path)
    home, source = tmp_path / "VOCdevkit" / "VOC2007", f"voc:{tmp_path}"
    assert len(load(source, train="test", test="trainval").train) == 3
    with pytest.raises(DataError, match=r"val\.txt: no such list\. Lists in this folder: test, trainval"):
        load(source, test="val")
    home.rename(home.with_name("VOC2012"))
    with pytest.raises(DataError, match=r"Found VOC2012; add -o year=2012"):
        load(source)
    assert len(load(source, year=2012).train) == 6
    with pytest.raises(ConfigError, match="Did you mean 'absent'"):
        load(source, difficult="abscent", year=2012)


def test_own_categories_and_images_elsewhere(tmp_path):
    home = tmp_path / "VOC2007"
    for folder in ("ImageSets/Main", "Annotations"):
        (home / folder).mkdir(parents=True)
    for name, thing in (("a", "Lynx"), ("b", "wolf")):
        write(
            home / "Annotations" / f"{name}.xml",
            f"<annotation><object><name>{thing}</name></object></annotation>",
        )
    write(home / "ImageSets" / "Main" / "trainval.txt", "a\n")
    write(home / "ImageSets" / "Main" / "test.txt", "b\n")
    write(home / "names.txt", "wolf\nLynx\n")
    for names in ("wolf,Lynx", "names.txt"):
        data = load(f"voc:{tmp_path}", categories=names, check_files=False)
        assert data.categories == ("wolf", "Lynx")
        assert (data.train.labels.values.tolist(), data.test.labels.values.tolist()) == ([[-1, 1]], [[1, -1]])
    assert (
        load(f"voc:{home}", categories="wolf,Lynx", root="pics", check_files=False).train.root
        == home / "pics"
    )


def write(path, text):
    path.write_text(text)
    return path


def test_objects_of_an_annotation(tmp_path):
    text = "<annotation><filename>a</filename><object>\n<name> Dog </name><part><name>head</name></part></object>"
    path = write(
        tmp_path / "a.xml",
        text + "\n<object><difficult>1</difficult>\n<name>cat</name></object></annotation>",
    )
    assert read_objects(path) == [Thing("dog", "", 2), Thing("cat", "1", 4)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<annotation>\n<object></annotation>", "line 2, column 11: not valid XML: mismatched tag"),
        ("", "not valid XML: no element found"),
        ("<html><object/></html>", r"line 1: starts with <html>, expected <annotation>"),
        (
            '<?xml version="1.0" encoding="klingon"?><annotation/>',
            r"a\.xml, line 1: not valid XML: its encoding .*klingon",
        ),
        ('<?xml version="1.0" encoding="cp932"?><annotation/>', r"a\.xml, line 1: not valid XML"),
        (
            '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><annotation>&b;</annotation>',
            "document type",
        ),
        (
            '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><annotation>&c;</annotation>',
            "line 1: a document type",
        ),
    ],
)
def test_bad_or_hostile_xml(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_objects(write(tmp_path / "a.xml", text))


def findings(found, home):
    return [
        (finding.file.removeprefix(f"{home}/"), finding.line, finding.kind, finding.message)
        for finding in found.of("error")
    ]


def test_annotation_faults_are_reported_together(tmp_path):
    shown = write_voc(tmp_path)
    home = tmp_path / "VOCdevkit" / "VOC2007"
    (home / "Annotations" / "000001.xml").unlink()
    things = "<object>\n<name>dogg</name></object>\n<object></object><object><difficult>2</difficult><name>cat</name>\n"
    write(home / "Annotations" / "000002.xml", f"<annotation>{things}</object></annotation>")
    with pytest.raises(DataError) as error:
        load(f"voc:{tmp_path}")
    assert "cannot be read (No such file or directory)" in str(error.value)
    assert "000002.xml, line 2: unknown category 'dogg'. Did you mean 'dog'" in str(error.value)
    with gather() as found:
        data = load(f"voc:{tmp_path}")
    assert [item[:3] for item in findings(found, home)] == [
        ("Annotations/000001.xml", None, "data"),
        ("Annotations/000002.xml", 2, "unknown-category"),
        ("Annotations/000002.xml", 3, "unknown-category"),
        ("Annotations/000002.xml", 3, "bad-value"),
    ]
    assert findings(found, home)[3][3] == "value '2'; expected 0 or 1"
    rest = {name: names for name, names in shown["trainval"].items() if name not in ("000001", "000002")}
    assert data.train.labels.values[0].tolist() == [0] * 20
    assert data.train.labels.values[2:].tolist() == expected(rest, "absent")


def test_class_list_faults(tmp_path):
    write_voc(tmp_path, xml=False)
    home = tmp_path / "VOCdevkit" / "VOC2007"
    lists = home / "ImageSets" / "Main"
    write(lists / "dog_trainval.txt", "000001  2\n000099  1\n000002  1\n000002 -1\n000003\n")
    (lists / "cat_trainval.txt").unlink()
    with pytest.raises(DataError, match=r"dog_trainval\.txt, line 2: image '000099' is not in trainval\.txt"):
        load(f"voc:{tmp_path}")
    with gather() as found:
        data = load(f"voc:{tmp_path}")
    assert findings(found, f"{lists}") == [
        (
            "cat_trainval.txt",
            None,
            "missing-file",
            "no such list, and there is no folder Annotations next to ImageSets",
        ),
        ("dog_trainval.txt", 1, "bad-value", "value '2'; expected 1, -1 or 0"),
        ("dog_trainval.txt", 2, "unknown-image", "image '000099' is not in trainval.txt"),
        ("dog_trainval.txt", 4, "duplicate-row", "image '000002' occurs twice, on lines 3 and 4"),
        ("dog_trainval.txt", 5, "bad-row", "1 field, expected 2: '000003'"),
        ("dog_trainval.txt", None, "bad-length", "has 1 image, but trainval.txt has 6"),
    ]
    assert data.train.labels.values[:3, CATEGORIES.index("dog")].tolist() == [0, 1, 0]
    assert not data.train.labels.values[:, CATEGORIES.index("cat")].any()


@pytest.mark.parametrize("xml", [True, False])
def test_image_list_faults(tmp_path, xml):
    write_voc(tmp_path, xml=xml)
    lists = tmp_path / "VOCdevkit" / "VOC2007" / "ImageSets" / "Main"
    write(lists / "trainval.txt", "000001\n000002 1\n000003\r\n000001\n000004\n000005\n000006\n")
    write(lists / "test.txt", "\n")
    with gather() as found:
        data = load(f"voc:{tmp_path}")
    kinds = [item[:3] for item in findings(found, lists) if not item[0].startswith(("aero", "bi", "bo"))]
    assert kinds[0] == ("trainval.txt", 2, "bad-row") and ("test.txt", None, "empty") in kinds
    duplicate = next(
        item for item in findings(found, lists) if item[0] == "trainval.txt" and item[2] == "duplicate-row"
    )
    assert duplicate[1] == 4 and duplicate[3] == "file_name '000001.jpg' occurs twice, on lines 1 and 4"
    assert len(data.train) + len(data.test) == 5


def test_annotations_that_no_list_names_are_noted(tmp_path):
    write_voc(tmp_path)
    home = tmp_path / "VOCdevkit" / "VOC2007"
    write(home / "Annotations" / "000099.xml", "no XML at all")
    with gather() as found:
        load(f"voc:{tmp_path}")
    note = found.of("note")[-1]
    assert (note.kind, note.file) == ("unlisted-annotation", str(home / "Annotations")) and not found.count(
        "error"
    )
    assert note.message == "1 annotation not used, for example 000099.xml: no list has the image"


def test_missing_pictures(tmp_path):
    write_voc(tmp_path)
    (tmp_path / "VOCdevkit" / "VOC2007" / "JPEGImages" / "000003.jpg").unlink()
    with pytest.raises(DataError, match=r"1 of \d image files are missing in .*JPEGImages: 000003\.jpg"):
        load(f"voc:{tmp_path}")
    assert len(load(f"voc:{tmp_path}", check_files=False).train) == 6


def test_a_list_cannot_lead_to_annotations_elsewhere(tmp_path):
    write_voc(tmp_path / "data")
    home = tmp_path / "data" / "VOCdevkit" / "VOC2007"
    secret = tmp_path / "secret.xml"
    secret.write_text("<annotation><object><name>SECRET</name></object></annotation>")
    for name in ("../../../../secret", str(secret.with_suffix(""))):
        (home / "ImageSets" / "Main" / "trainval.txt").write_text(f"000001\n{name}\n")
        with gather() as found:
            load(f"voc:{tmp_path / 'data'}")
        said = " ".join(finding.message for finding in found.shown)
        assert "so it is not read" in said and "secret'" not in said.lower().replace(name, "")
        assert not [finding for finding in found.shown if finding.kind == "unknown-category"]
