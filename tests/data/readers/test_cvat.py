import pytest

import sarb
from sarb.data.check.problems import gather
from sarb.errors import ConfigError, DataError
from tests.data.fixtures import write_image
from tests.data.formats import cvat as published

OPTIONS = {"unlisted": "absent", "test": 0}


def write(root, images, labels="", head='<?xml version="1.0" encoding="utf-8"?>\n'):
    """A task export; every image there is on disk."""
    for name in ("a.jpg", "b.jpg", "deep/c.jpg"):
        write_image(root / "images" / name, 0, (8, 8))
    declared = "".join(
        f"<label><name>{name}</name><attributes></attributes></label>" for name in labels.split()
    )
    meta = f"<meta><task><labels>{declared}</labels></task></meta>"
    (root / "annotations.xml").write_text(
        f"{head}<annotations><version>1.1</version>{meta}\n{images}</annotations>\n"
    )
    return root / "annotations.xml"


def image(name, *inside, more=""):
    return f'<image id="0" name="{name}" width="8" height="8" {more}>\n' + "\n".join(inside) + "\n</image>\n"


def tag(label):
    return f'<tag label="{label}" source="manual"></tag>'


def box(label):
    return (
        f'<box label="{label}" xtl="1" ytl="1" xbr="2" ybr="2"><attribute name="label">no</attribute></box>'
    )


def labels(data):
    return dict(zip(data.train.labels.paths, data.train.labels.values.tolist(), strict=True))


def test_labels_of_the_task_give_order_and_all_categories(tmp_path):
    path = write(tmp_path, image("b.jpg", tag("dog")) + image("a.jpg"), labels="dog cat ant")
    data = sarb.load(path, **OPTIONS)
    assert data.categories == ("dog", "cat", "ant")
    assert labels(data) == {"b.jpg": [1, -1, -1], "a.jpg": [-1, -1, -1]}
    assert data.train.root == tmp_path / "images"
    assert data.train.lines.tolist() == [3, 6]
    assert data.notes["unlisted"] == "absent"


def test_without_labels_in_the_file_categories_are_alphabetical(tmp_path):
    path = write(tmp_path, image("a.jpg", tag("dog"), tag("cat"), tag("dog")) + image("deep/c.jpg"))
    data = sarb.load(path, unlisted="unknown", test=0)
    assert data.categories == ("cat", "dog")
    assert labels(data) == {"a.jpg": [1, 1], "deep/c.jpg": [0, 0]}


def test_a_folder_is_enough(tmp_path):
    write(tmp_path, image("a.jpg", tag("dog")))
    assert labels(sarb.load(f"cvat:{tmp_path}", **OPTIONS)) == {"a.jpg": [1]}


def test_an_undeclared_tag_names_line_and_near_match(tmp_path):
    path = write(tmp_path, image("a.jpg", tag("dgo")), labels="dog cat")
    with pytest.raises(
        DataError, match=r"annotations.xml, line 4: unknown category 'dgo'. Did you mean 'dog'\?"
    ):
        sarb.load(path, **OPTIONS)


def test_shapes_must_be_declared_and_can_be_present(tmp_path):
    path = write(
        tmp_path, image("a.jpg", tag("dog"), box("cat"), box("dog"), box("cat")), labels="dog cat ant"
    )
    with pytest.raises(DataError, match=r"contains shapes \(3 box\) as well as 1 tag") as error:
        sarb.load(path, **OPTIONS)
    assert "-o shapes=ignore: 1 present" in str(error.value)
    assert "-o shapes=present: 2 present" in str(error.value)
    assert labels(sarb.load(path, shapes="ignore", **OPTIONS)) == {"a.jpg": [1, -1, -1]}
    assert labels(sarb.load(path, shapes="present", **OPTIONS)) == {"a.jpg": [1, 1, -1]}


def test_a_label_for_boxes_is_no_category_of_tags(tmp_path):
    example = published.example(tmp_path)
    assert "wheel" not in sarb.load(example.source, **example.options).categories
    data = sarb.load(example.source, unlisted="absent", shapes="present")
    assert data.categories == ("dog & friends", "cat", "wheel", "tree")
    assert data.train.labels.values.tolist() == [[1, 1, 1, -1], [-1, -1, -1, -1]]
    assert data.test.labels.values.tolist() == [[-1, 1, -1, 1]]


def test_points_of_a_skeleton_are_no_labels(tmp_path):
    skeleton = '<skeleton label="person"><points label="nose" points="1,1"></points></skeleton>'
    path = write(tmp_path, image("a.jpg", tag("dog"), skeleton), labels="dog person")
    text = path.read_text().replace(
        "</labels>", "<label><name>nose</name><parent>person</parent></label></labels>"
    )
    path.write_text(text)
    data = sarb.load(path, shapes="present", **OPTIONS)
    assert data.categories == ("dog", "person")
    assert labels(data) == {"a.jpg": [1, 1]}


def test_subsets_are_splits_or_ignored(tmp_path):
    path = write(
        tmp_path,
        image("a.jpg", tag("dog"), more='subset="default"')
        + image("b.jpg", tag("dog"), more='subset="test"')
        + image("deep/c.jpg", more='subset="val"'),
    )  # images without a folder per subset
    data = sarb.load(path, unlisted="absent")
    assert {name: part.labels.paths for name, part in data.splits.items()} == {
        "train": ("a.jpg",),
        "test": ("b.jpg",),
        "valid": ("deep/c.jpg",),
    }
    assert labels(sarb.load(path, subsets="ignore", **OPTIONS)) == {
        "a.jpg": [1],
        "b.jpg": [1],
        "deep/c.jpg": [-1],
    }


def test_a_strange_subset_names_the_option(tmp_path):
    path = write(tmp_path, image("a.jpg", tag("dog"), more='subset="batch 7"'))
    with pytest.raises(
        DataError, match=r"line 3, column 'subset': unknown subset 'batch 7'.*-o subsets=ignore"
    ):
        sarb.load(path, **OPTIONS)


def test_everything_wrong_at_once(tmp_path):
    path = write(
        tmp_path,
        image("a.jpg", '<tog label="dog"></tog>', '<tag labl="dog"></tag>', tag("cat"))
        + image("a.jpg", tag("dog"))
        + image("", tag("cow")),
        labels="dog dog cat",
    )
    with pytest.raises(DataError) as error:
        sarb.load(path, **OPTIONS)
    found = {(finding.kind, finding.line) for finding in error.value.findings}
    assert found == {
        ("bad-label", 2),
        ("bad-element", 4),
        ("bad-element", 5),
        ("conflicting-rows", 8),
        ("bad-element", 11),
        ("unknown-category", 12),
        ("bad-name", 11),
    }
    assert "<tog> in an image" in str(error.value) and "Did you mean 'labl'?" in str(error.value)
    with gather() as gathered:
        data = sarb.load(path, **OPTIONS)
    assert found <= {(finding.kind, finding.line) for finding in gathered.shown}
    assert labels(data) == {"a.jpg": [-1, 1]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<annotations><track id='0' label='car'></track></annotations>", "line 1: this is 'CVAT for video'"),
        ("<annotation><object/></annotation>", "line 1: starts with <annotation>.*Pascal VOC"),
        ("<annotations></annotations>", "contains no <image>"),
        ("<annotations>\n<image name='a.jpg'/></annotations>", "no image has a <tag>"),
        (
            "<annotations>\n<image name='a.jpg'>\n</annotations>",
            "line 3, column 3: not valid XML: mismatched tag",
        ),
        ("PK\3\4", "a zip archive; unzip it"),
        ("", "line 1, column 1: not valid XML: no element found"),
        (
            "<!DOCTYPE a [<!ENTITY b 'c'>]><annotations/>",
            "line 1: a document type declaration is not allowed",
        ),
        ("<annotations>" + "\n<a>" * 200 + "</a>" * 200 + "</annotations>", "line 101: nested too deeply"),
        ("<?xml version='1.0' encoding='utf-7'?><annotations/>", "line 1.*not valid XML"),
    ],
)
def test_other_files_are_told_apart(tmp_path, text, message):
    path = tmp_path / "annotations.xml"
    path.write_text(text)
    with pytest.raises(DataError, match=f"annotations.xml(, |: ).*{message}"):
        sarb.load(path, **OPTIONS)


def test_a_folder_without_the_file_says_so(tmp_path):
    with pytest.raises(DataError, match=r"contains no annotations.xml"):
        sarb.load(f"cvat:{tmp_path}", **OPTIONS)


@pytest.mark.parametrize("option", ["unlisted", "shapes", "subsets"])
def test_a_wrong_word_for_an_option(tmp_path, option):
    path = write(tmp_path, image("a.jpg", tag("dog")))
    with pytest.raises(ConfigError, match=f"value of option {option}:.*'presnt'"):
        sarb.load(path, **{**OPTIONS, option: "presnt"})
