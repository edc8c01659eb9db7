import shutil

import pytest

from sarb.data.images import decode
from sarb.errors import ImageError, SarbError
from sarb.label_studio.host import Host
from sarb.serve.task_images import TaskImages


@pytest.fixture
def host(gaps, monkeypatch):
    """A server that has one uploaded image and the local files."""
    made = Host("http://studio.test:8080", "token")
    content = {
        "/data/upload/1/ab-00.jpg": (gaps / "00.jpg").read_bytes(),
        "/data/local-files/?d=mine/01.jpg": (gaps / "01.jpg").read_bytes(),
    }

    def get(path):
        path = path.removeprefix("http://studio.test:8080")
        if path not in content:
            raise SarbError(f"{path}: HTTP 404")
        return content[path]

    monkeypatch.setattr(made, "get", get)
    return made


def test_local_files_come_from_an_allowed_folder_or_from_the_server(host, gaps):
    there = TaskImages(host, [gaps.parent])
    assert decode(there.find("/data/local-files/?d=mine/02.jpg")).size == (64, 64)
    shutil.copy(gaps / "02.jpg", gaps / "a b+c&d.jpg")
    assert decode(there.find("/data/local-files/?d=mine/a%20b%2Bc%26d.jpg")).size == (64, 64)
    assert decode(TaskImages(host).find("/data/local-files/?d=mine/01.jpg")).size == (64, 64)
    assert decode(TaskImages(host).find("http://studio.test:8080/data/upload/1/ab-00.jpg")).size == (64, 64)


@pytest.mark.parametrize(
    "value",
    [
        "/data/local-files/?d=../secret.jpg",
        "/data/local-files/?d=/etc/passwd",
        "/data/local-files/?d=%2e%2e/secret.jpg",
        "/data/local-files/?d=linked.jpg",
        "/etc/passwd",
        "../secret.jpg",
        "file:///etc/passwd",
        "http://other.test/data/upload/1/ab-00.jpg",
        "http://studio.test:8080.evil.test/data/upload/1/ab-00.jpg",
        "s3://bucket/a.jpg",
        "data:image/png;base64,AA",
        "/api/token/",
        "/data/upload/../../api/token/",
        "http://[",
        "/data/local-files/?d=%00",
        "/data/local-files/?d=" + "x" * 5000,
        "",
        None,
        7,
    ],
)
def test_nothing_else_is_read(host, gaps, value):
    shutil.copy(gaps / "00.jpg", gaps.parent / "secret.jpg")
    (gaps / "linked.jpg").symlink_to(gaps.parent / "secret.jpg")
    with pytest.raises(ImageError):
        TaskImages(host, [gaps]).find(value)


def test_a_folder_that_is_not_there(host, tmp_path):
    with pytest.raises(SarbError, match="no such folder"):
        TaskImages(host, [tmp_path / "gone"])


@pytest.mark.parametrize("value", ["/data/upload/a\nb", "/data/upload/a b\x00", "/data/upload/ä"])
def test_an_address_that_is_none(value):
    """With a real host, whose library refuses such addresses in many ways."""
    with pytest.raises(ImageError):
        TaskImages(Host("http://127.0.0.1:1")).find(value)
