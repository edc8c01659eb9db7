"""Images in, parts out, in an object store: moto's server on this computer, which answers as S3 does."""

import shutil

import pytest
from pyarrow import parquet

from sarb import bulk
from sarb.bulk.sources import find_items
from sarb.workflows.training import train_session
from tests.bulk.conftest import GIVEN

BUCKET = "photos"


@pytest.fixture(scope="module")
def store():
    """A file system of a bucket; what a user sets in the environment is set here, for the worker processes too."""
    import s3fs
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "any")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "any")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        files = s3fs.S3FileSystem()
        files.mkdir(BUCKET)
        yield files
    server.stop()


@pytest.fixture(scope="module")
def run(squares, tmp_path_factory):
    out = tmp_path_factory.mktemp("bulk") / "run"
    options = {
        "data_options": {"encoding": "binary"},
        "out": out,
        "given": GIVEN,
        "quiet": True,
        "page": False,
    }
    train_session(source=str(squares / "labels.csv"), **options)
    return out


def test_images_and_parts_of_a_bucket(store, run, squares, tmp_path):
    for image in squares.glob("*.jpg"):
        store.put(str(image), f"{BUCKET}/in/{image.name}")
    store.pipe(f"{BUCKET}/in/40.jpg", b"damaged")
    address = f"s3://{BUCKET}/in"
    names = [f"{address}/{image.name}" for image in sorted(squares.glob("*.jpg"))]
    assert [item.name for item in find_items([address])] == names

    first = bulk.predict(run, address, f"s3://{BUCKET}/out", workers=2, part_size=10)
    assert (first.images, first.rows, first.unreadable, first.computed) == (48, 47, 1, 5)
    store.rm(f"{BUCKET}/out/part-000002.parquet")
    store.invalidate_cache()
    again = bulk.predict(run, address, f"s3://{BUCKET}/out", workers=1, part_size=10)
    assert (again.rows, again.computed) == (47, 1)

    local = tmp_path / "out"
    bulk.predict(run, address, local, workers=1, part_size=10)
    store.invalidate_cache()
    there = {name.rpartition("/")[2]: store.cat(name) for name in store.find(f"{BUCKET}/out")}
    assert there == {file.name: file.read_bytes() for file in local.iterdir()}
    assert parquet.read_table(local / "part-000000.parquet")["file_name"].to_pylist() == names[:10]


def test_a_list_and_a_shard_of_a_bucket(store, run, squares, tmp_path):
    shutil.make_archive(str(tmp_path / "shard"), "tar", squares)
    store.put(str(tmp_path / "shard.tar"), f"{BUCKET}/shards/shard.tar")
    store.pipe(f"{BUCKET}/list.csv", b"file_name\nin/00.jpg\nin/none.jpg\nin2/empty.jpg\n")
    store.pipe(f"{BUCKET}/in2/empty.jpg", b"")  # S3 refuses any range of it
    done = bulk.predict(
        run, [f"s3://{BUCKET}/list.csv", f"s3://{BUCKET}/shards/*.tar"], tmp_path / "out", workers=1
    )
    assert (done.images, done.unreadable) == (51, 2)
    assert done.reasons == ("in/none.jpg: no such file", "in2/empty.jpg: the file is empty")
