from sarb.data.readers.image_files import first_holding, given_folder, is_file


def test_names_that_no_file_can_have(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"")
    assert is_file(tmp_path, "a.jpg")
    assert not any(is_file(tmp_path, name) for name in ("", "b.jpg", "a\0b", "x" * 5000))


def test_the_first_folder_with_an_image(tmp_path):
    folders = [tmp_path / name for name in ("none", "empty", "full")]
    assert first_holding(folders, ["a.jpg"]) == tmp_path / "none"
    for folder in folders[1:]:
        folder.mkdir()
    assert first_holding(folders, ["a.jpg"]) == tmp_path / "empty"
    (tmp_path / "full" / "a.jpg").write_bytes(b"")
    assert first_holding(folders, ["a.jpg"]) == tmp_path / "full"


def test_a_root_is_looked_for_here_and_then_beside_the_labels(tmp_path, monkeypatch):
    (tmp_path / "here" / "images").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    base = tmp_path / "labels"
    assert given_folder("images", base).resolve() == tmp_path / "here" / "images"
    assert given_folder("pictures", base) == base / "pictures"
    assert given_folder(tmp_path / "none", base) == tmp_path / "none"
