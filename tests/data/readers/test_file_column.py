import pytest

import sarb
from sarb.errors import DataError, DataNote
from tests.data.fixtures import write_image


@pytest.fixture
def table(tmp_path):
    """Return a function that writes labels.csv; the pictures a.jpg, b.jpg and c.jpg are in ``images``."""
    for number, name in enumerate("abc"):
        write_image(tmp_path / "images" / f"{name}.jpg", number, (8, 8))

    def write(text):
        (tmp_path / "labels.csv").write_text(text)
        return tmp_path / "labels.csv"

    return write


def test_the_only_column_of_files_is_taken_and_named(table):
    path = table("x,Bild,y\nyes,a.jpg,no\nno,b.jpg,yes\n")
    with pytest.warns(
        DataNote, match=r"column 'Bild', the only one whose values are all files .* \(2 files\)"
    ):
        data = sarb.load(path, test=0)
    assert data.categories == ("x", "y") and data.train.labels.paths == ("a.jpg", "b.jpg")
    with pytest.raises(DataError, match="the header has no column 'file_name'"):
        sarb.load(path, check_files=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Bild,x\na.jpg,yes\nz.jpg,no\n", "add -o file_column=Bild. 1 of its 2 values are files that exist."),
        (
            "one,two,x\na.jpg,b.jpg,yes\nb.jpg,c.jpg,no\n",
            "Rename 'one' to 'file_name', or add -o file_column=one",
        ),
        (
            "fleece_name,Bild,x\n1,deep/a.jpg,yes\n2,deep/b.jpg,no\n",
            "Rename 'Bild' to 'file_name', or add -o file_column=Bild. Its values are names of images, such as "
            "'deep/a.jpg'.",
        ),
        ("Bild,x\ny.jpg,yes\nz.jpg,no\n", "the header has no column 'file_name', only Bild, x."),
    ],
)
def test_a_column_in_doubt_is_not_taken(table, text, message):
    with pytest.raises(DataError) as error:
        sarb.load(table(text))
    assert message in str(error.value)


def test_everything_that_is_wrong_comes_at_once(table):
    text = "Bild;x;split;y;note\na.jpg;1;train;0;old\nz.jpg;1;tset;0;new\nb.jpg;0;test;1;torn\n"
    with pytest.raises(DataError) as error:
        sarb.load(table(text))
    said = str(error.value)
    for part in (
        "add -o delimiter=';'",
        "add -o file_column=Bild",
        "value 'tset'; expected train, test or valid",
        "-o ignore=note",
        "-o encoding=binary",
        "-o encoding=signed",
        "z.jpg",
    ):
        assert part in said, f"{part}\n{said}"


def test_a_list_with_any_file_column(table):
    path = table("Bild,labels\na.jpg,cat;dog\nb.jpg,dog\n")
    with pytest.warns(DataNote, match="column 'Bild', the only one that can hold them"):
        data = sarb.load(path, unlisted="absent", test=0)
    assert data.categories == ("cat", "dog")
    path = table("id,Bild,labels\n1,a.jpg,cat;dog\n2,b.jpg,dog\n")
    with pytest.warns(DataNote, match="the only one whose values are all files"):
        sarb.load(f"list:{path}", unlisted="absent", test=0)


def test_a_folder_further_down_is_proposed(table, tmp_path):
    (tmp_path / "images").rename(tmp_path / "deep")
    (tmp_path / "Fotos").mkdir()
    (tmp_path / "deep").rename(tmp_path / "Fotos" / "deep")
    with pytest.raises(DataError) as error:
        sarb.load(table("Bild,x\ndeep/a.jpg,yes\ndeep/b.jpg,no\n"))
    folder = tmp_path / "Fotos"
    assert f"They are in {folder}: add -o root={folder} as well." in str(error.value)
    with pytest.raises(DataError, match=r"they are in .*Fotos: add -o root="):
        sarb.load(table("file_name,x\ndeep/a.jpg,yes\ndeep/b.jpg,no\n"))
