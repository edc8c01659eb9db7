"""Work waits for its turn, and decoding takes a bounded amount of memory."""

import io
import threading

import pytest
from PIL import Image

pytest.importorskip("fastapi", reason="needs the extra [serve]: pip install 'sarb[serve]'")

from sarb.errors import ImageError
from sarb.serve.turns import DECODERS, BusyError, Decoders, Workers
from tests.waiting import PATIENCE, wait_until


def _image(width, height, kind="JPEG", **options):
    buffer = io.BytesIO()
    Image.new("RGB", (width, height)).save(buffer, kind, **options)
    return buffer.getvalue()


def test_a_queue_has_an_end():
    workers = Workers(1, waiting=2)
    go = threading.Event()
    futures = [workers.submit(lambda: go.wait(PATIENCE)) for _ in range(3)]
    with pytest.raises(BusyError, match="3 others are waiting already; try again"):
        workers.submit(lambda: None)
    go.set()
    assert all(future.result(PATIENCE) for future in futures)
    assert workers.submit(lambda: "done").result(PATIENCE) == "done"


def test_no_more_at_once_than_memory_allows():
    photo = _image(100, 100)  # 80,000 bytes
    decoders = Decoders(memory=100_000)
    inside, most = [], []
    go = threading.Event()

    def work(header):
        inside.append(header)
        most.append(len(inside))
        assert go.wait(PATIENCE)
        inside.pop()

    futures = [decoders.submit(photo, work) for _ in range(2 * DECODERS)]
    wait_until(lambda: inside, "the first has its turn")
    go.set()
    for future in futures:
        future.result(PATIENCE)
    assert most == [1] * 2 * DECODERS


def test_what_failed_gives_its_memory_back():
    decoders = Decoders(memory=100_000)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            decoders.submit(_image(100, 100), lambda _: 1 // 0).result(PATIENCE)
        with pytest.raises(ImageError, match="not an image"):
            decoders.submit(b"none", lambda _: None).result(PATIENCE)


def test_one_image_that_is_too_large_is_refused_before_it_is_decoded():
    decoders = Decoders(memory=1_000_000)
    with pytest.raises(ImageError, match="too large, 300 × 200 pixels would take 1 MB"):
        decoders.submit(_image(300, 200, "PNG"), lambda _: None).result(PATIENCE)
    assert decoders.submit(_image(300, 200), lambda header: header.width).result(PATIENCE) == 300


def test_a_jpeg_that_shrinks_on_the_way_takes_little():
    large = _image(800, 800)
    assert (
        Decoders(draft=100, memory=100_000).submit(large, lambda header: header.scale).result(PATIENCE) == 8
    )
    with pytest.raises(ImageError, match="too large"):
        Decoders(memory=100_000).submit(large, lambda _: None).result(PATIENCE)
    with pytest.raises(ImageError, match="too large"):  # libjpeg holds all of it first
        progressive = _image(800, 800, progressive=True)
        Decoders(draft=100, memory=100_000).submit(progressive, lambda _: None).result(PATIENCE)
