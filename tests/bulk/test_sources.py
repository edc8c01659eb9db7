import io
import tarfile
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from sarb.bulk.items import Item, Picture
from sarb.bulk.sources import find_items
from sarb.data.decoding import decode
from sarb.data.images import find_images
from sarb.errors import DataError, ImageError, SarbError


@pytest.fixture
def folder(tmp_path, squares):
    """Three images, one of them deeper, and a file that is none."""
    for name in ("b.jpg", "a/c.jpg", "a.jpg"):
        place = tmp_path / "photos" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes((squares / "00.jpg").read_bytes())
    (tmp_path / "photos" / "notes.txt").write_text("no image")
    (tmp_path / "photos" / ".hidden.jpg").write_text("no image")
    return tmp_path / "photos"


def shard(file, squares, names):
    with tarfile.open(file, "w") as tar:
        for name in names:
            tar.add(squares / "01.jpg", name)
            info = tarfile.TarInfo(name.replace(".jpg", ".json"))
            info.size = 2
            tar.addfile(info, io.BytesIO(b"{}"))
    return file


def test_a_folder_has_the_order_of_find_images(folder):
    assert [item.name for item in find_items([folder])] == [str(path) for path in find_images([folder])]


def test_an_image_is_the_same_from_a_file_and_from_a_shard(tmp_path, squares):
    place = shard(tmp_path / "one.tar", squares, ["x/1.jpg", "2.jpg"])
    items = list(find_items([tmp_path]))
    assert [item.name for item in items] == [f"{place}/x/1.jpg", f"{place}/2.jpg"]
    assert {decode(Picture(item)).tobytes() for item in items} == {decode(squares / "01.jpg").tobytes()}


def test_lists_name_images_relative_to_their_folder(folder, tmp_path):
    (tmp_path / "list.csv").write_text("﻿id,file_name\n1,photos/b.jpg\n2,photos/a/c.jpg\n", encoding="utf-8")
    parquet.write_table(pyarrow.table({"image": ["photos/b.jpg", "/x/y.jpg"]}), tmp_path / "list.parquet")
    (tmp_path / "list.tsv").write_text("path\tn\nphotos/b.jpg\t1\n")
    b = Item("photos/b.jpg", str(folder / "b.jpg"))
    assert list(find_items([tmp_path / "list.csv"])) == [b, Item("photos/a/c.jpg", str(folder / "a/c.jpg"))]
    assert list(find_items([tmp_path / "list.parquet"])) == [b, Item("/x/y.jpg", "/x/y.jpg")]
    assert list(find_items([tmp_path / "list.tsv"])) == [b]


def test_an_object_store_gives_the_same_images(folder, squares, tmp_path):
    import fsspec

    store = fsspec.filesystem("memory")
    store.put(str(folder), "/bucket/photos", recursive=True)
    store.put(str(shard(tmp_path / "s.tar", squares, ["1.jpg"])), "/bucket/photos/s.tar")
    try:
        items = list(find_items(["memory://bucket/photos"]))
        names = [item.name.removeprefix("memory:///bucket/photos/") for item in items]
        assert names == ["a/c.jpg", "a.jpg", "b.jpg", "s.tar/1.jpg"]
        assert decode(Picture(items[0])).tobytes() == decode(squares / "00.jpg").tobytes()
        assert decode(Picture(items[3])).tobytes() == decode(squares / "01.jpg").tobytes()
        assert [item.name for item in find_items(["memory://bucket/photos/*.tar"])] == [items[3].name]
        store.pipe("/bucket/list.csv", b"url\nphotos/b.jpg\nmemory://bucket/photos/a.jpg\n")
        places = [item.place for item in find_items(["memory://bucket/list.csv"])]
        assert places == ["memory://bucket/photos/b.jpg", "memory://bucket/photos/a.jpg"]
        with pytest.raises(DataError, match="no such file"):
            list(find_items(["memory://bucket/none"]))
    finally:
        store.rm("/bucket", recursive=True)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", b"name,b\n1,2\n", "no column of image names"),
        ("x.csv", b"file_name,b\n1\n", "row 1 has 1 cells"),
        ("x.csv", b"file_name,b\n,2\n", "row 1 has no image name"),
        ("x.csv", b"file_name\n\xff\n", "not a table in UTF-8"),
        ("x.parquet", b"PAR1", "not a readable Parquet file"),
        ("x.tar", b"no tar file" * 100, "not a whole tar file"),
        ("x.tar.gz", b"", "is compressed"),
    ],
)
def test_sources_that_cannot_be_read(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        list(find_items([tmp_path / name]))


def test_sources_that_are_not_there(tmp_path):
    with pytest.raises(DataError, match="no such file or folder"):
        list(find_items([tmp_path / "none"]))
    with pytest.raises(ImageError, match="no images in this folder"):
        list(find_items([tmp_path]))
    with pytest.raises(SarbError, match="nosuch"):
        list(find_items(["nosuch://bucket"]))


def test_a_store_that_cannot_be_reached_says_nothing_about_the_image(monkeypatch):
    import fsspec

    from sarb.bulk import items

    monkeypatch.setattr(items, "PAUSES", (0, 0))
    asked = []

    def fail(self, path, **options):
        asked.append(path)
        raise ConnectionResetError("gone")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "cat_file", fail)
    picture = Picture(Item("a", "memory://bucket/a.jpg"))
    with pytest.raises(ConnectionResetError):
        picture.read()
    assert len(asked) == 3 and isinstance(picture.outage, ConnectionResetError)


def test_an_empty_object_and_a_refused_address_are_the_image_s_own_fault(monkeypatch):
    """S3 answers a range of an empty object with an error, and a web server may say 410."""
    import fsspec

    from sarb.bulk import items

    class GoneError(Exception):
        status = 410

    monkeypatch.setattr(items, "PAUSES", (0, 0))
    store = fsspec.filesystem("memory")
    kind = type(store)
    store.pipe("/bucket/zero.jpg", b"")
    try:

        def no_range(self, path, **options):
            raise OSError(22, "The requested range is not satisfiable")

        def gone(self, path, **options):
            raise GoneError("410, message='Gone'")

        monkeypatch.setattr(kind, "cat_file", no_range)
        picture = Picture(Item("a", "memory://bucket/zero.jpg"))
        assert picture.read() == b"" and picture.outage is None
        monkeypatch.setattr(kind, "cat_file", gone)
        picture = Picture(Item("a", "memory://bucket/a.jpg"))
        with pytest.raises(ImageError, match=r"^a: 410"):
            decode(picture)
        assert picture.outage is None
    finally:
        store.rm("/bucket", recursive=True)


def test_links_in_a_shard_are_not_forgotten(tmp_path, squares):
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        for name, kind, target in [
            ("hard.jpg", tarfile.LNKTYPE, "a.jpg"),
            ("soft.jpg", tarfile.SYMTYPE, "a.jpg"),
            ("lost.jpg", tarfile.LNKTYPE, "none.jpg"),
        ]:
            link = tarfile.TarInfo(name)
            link.type, link.linkname = kind, target
            tar.addfile(link)
        tar.add(squares / "01.jpg", "a.jpg")
        tar.add(squares / "02.jpg", "a.jpg")
    found = {item.name.removeprefix(f"{tmp_path}/x.tar/"): item for item in find_items([tmp_path / "x.tar"])}
    assert list(found) == ["soft.jpg", "a.jpg", "hard.jpg", "lost.jpg"]
    assert len(list(find_items([tmp_path / "x.tar"]))) == 5  # a name that is there twice has two rows
    assert decode(Picture(found["hard.jpg"])).tobytes() == decode(squares / "01.jpg").tobytes()
    for name in ("soft.jpg", "lost.jpg"):
        with pytest.raises(ImageError):
            decode(Picture(found[name]))


def test_places_do_not_depend_on_the_working_folder(folder, monkeypatch):
    """A worker of a cluster that runs already has a working folder of its own."""
    monkeypatch.chdir(folder.parent)
    Path("list.csv").write_text("file_name\nphotos/a.jpg\n")
    items = list(find_items(["photos", "list.csv", "photos/b.jpg"]))
    assert [item.name for item in items] == [
        "photos/a/c.jpg",
        "photos/a.jpg",
        "photos/b.jpg",
        "photos/a.jpg",
        "photos/b.jpg",
    ]
    assert [item.place for item in items] == [str(folder.parent / item.name) for item in items]


def test_patterns_match_local_names(folder):
    assert [item.place for item in find_items([folder / "?.jpg"])] == [
        str(folder / "a.jpg"),
        str(folder / "b.jpg"),
    ]
    (folder / "[x].jpg").write_bytes(b"")
    assert [item.place for item in find_items([folder / "[x].jpg"])] == [str(folder / "[x].jpg")]
    with pytest.raises(DataError, match="nothing matches"):
        list(find_items([folder / "*.tar"]))
