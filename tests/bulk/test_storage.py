import fsspec
import pytest

from sarb.bulk.storage import Storage
from sarb.errors import SarbError


@pytest.mark.parametrize(
    ("broken", "use"),
    [
        ("pipe_file", lambda storage: storage.write("a", b"")),
        ("cat_file", lambda storage: storage.read("a")),
        ("exists", lambda storage: storage.remove("a")),
        ("open", lambda storage: storage.writing("a").__enter__()),
    ],
)
def test_what_a_store_does_not_do_is_one_line(monkeypatch, broken, use):
    class OutageError(Exception):
        """Stores have errors of their own; few are OSErrors."""

    def fail(self, *given, **options):
        raise OutageError("the endpoint\ncannot be reached")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), broken, fail)
    with pytest.raises(
        SarbError, match=r"^memory://bucket/a: the endpoint cannot be reached; the same command"
    ):
        use(Storage("memory://bucket"))


def test_a_bucket_that_is_not_there(monkeypatch):
    def fail(self, *given, **options):
        raise FileNotFoundError("The specified bucket does not exist")

    kind = type(fsspec.filesystem("memory"))
    monkeypatch.setattr(kind, "cat_file", fail)
    monkeypatch.setattr(kind, "pipe_file", fail)
    storage = Storage("memory://bucket")
    assert storage.read("a") is None
    with pytest.raises(SarbError, match="The specified bucket does not exist"):
        storage.write("a", b"")
