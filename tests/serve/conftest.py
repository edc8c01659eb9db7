"""A tiny trained run, a table of squares with gaps, and a server's parts."""

import csv
import shutil
import threading

import pytest

from tests.serve.browser import CHROMIUM, FLAGS, PATIENCE

pytest.importorskip("fastapi", reason="needs the extra [serve]: pip install 'sarb[serve]'")

IMAGES = 20
COPIES = 3
HOME = "http://127.0.0.1:8000"
#: what a browser says about a cable that the test has pulled, and about a photo that it has deleted
QUIET = ("ERR_FAILED", "a status of 422")


@pytest.fixture(scope="session")
def run(tmp_path_factory, squares_data):
    """A run folder: one epoch of a tiny network, and a self-contained page like the real report."""
    import sarb

    folder = tmp_path_factory.mktemp("runs") / "squares"
    sarb.fit(
        squares_data.train,
        method="partial_bce",
        network="ssgrl",
        backbone="tiny",
        epochs=1,
        image_size=64,
        batch_size=18,
        network_options={"dim": 16, "hidden": 8},
        out=folder,
        progress=False,
    )
    (folder / "report.html").write_text(
        "<!doctype html><meta charset=utf-8><style>p{color:teal}</style><p id=said>figures</p>"
        '<img alt="" src="data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==">'
        "<script>document.getElementById('said').textContent = 'figures, sorted'</script>",
        encoding="utf-8",
    )
    return folder


@pytest.fixture(scope="session")
def recogniser(run):
    import sarb
    from sarb.serve.recogniser import Recogniser

    return Recogniser(sarb.load_model(run))


@pytest.fixture
def gaps(squares, tmp_path):
    """Folder ``mine``: pictures and ``labels.csv`` ('1.0', '0.0' or blank); three of five are unknown."""
    folder = tmp_path / "mine"
    folder.mkdir()
    with (squares / "labels.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = list(csv.reader(file))
    for number, row in enumerate(rows[:IMAGES]):
        shutil.copy(squares / row[0], folder / row[0])
        row[2:] = [f"{float(code)}" if (number + place) % 5 < 2 else "" for place, code in enumerate(row[2:])]
    with (folder / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([head[0], *head[2:]])
        writer.writerows([row[0], *row[2:]] for row in rows[:IMAGES])
    return folder


@pytest.fixture
def crowd(gaps):
    """The table of ``gaps`` with three copies of each photo: 36 unknown labels per category, two pages."""
    with (gaps / "labels.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = list(csv.reader(file))
    with (gaps / "crowd.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        for copy in range(COPIES):
            for name, *codes in rows:
                shutil.copy(gaps / name, gaps / f"{copy}-{name}")
                writer.writerow([f"{copy}-{name}", *codes])
    return gaps / "crowd.csv"


@pytest.fixture
def open_review(recogniser, gaps):
    """Open the desk of ``gaps``, again and again; what is still open is closed at the end."""
    from sarb.serve.start import open_desk

    opened = []

    def opening(**options):
        given = {
            "labels": str(gaps / "labels.csv"),
            "options": {"encoding": "binary", "test": 0},  # all of them are training photos
            "out": None,
            **options,
        }
        opened.append(open_desk(recogniser, **given))
        return opened[-1]

    yield opening
    for desk in opened:
        desk.close()


@pytest.fixture
def plain(run, recogniser):
    from fastapi.testclient import TestClient

    from sarb.serve.app import create_app

    with TestClient(create_app(run, recogniser, limit=200_000), base_url=HOME) as client:
        yield client


@pytest.fixture
def desk(open_review):
    return open_review()


@pytest.fixture
def client(run, recogniser, desk):
    from fastapi.testclient import TestClient

    from sarb.serve.app import create_app

    with TestClient(create_app(run, recogniser, desk), base_url=HOME) as client:
        yield client


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def address(run, recogniser, desk):
    """A server of the run with a review, in a thread."""
    import uvicorn

    from sarb.serve.app import create_app
    from sarb.serve.listening import listen

    with listen("127.0.0.1", 0) as listening:
        server = uvicorn.Server(
            uvicorn.Config(create_app(run, recogniser, desk), log_config=None, log_level="error")
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.fixture
def tab(browser, address):
    """Open tabs of separate people; at the end nothing may have been complained about or asked of anybody
    else.
    """
    from playwright.sync_api import expect

    contexts, complaints, requests = [], [], []

    def opening(part="", **options):
        context = browser.new_context(base_url=address, **options)
        context.set_default_timeout(1000 * PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(f"/#{part}")
        expect(page.locator("nav a[aria-current]")).to_have_count(1)  # its scripts have started
        return page

    yield opening
    for context in contexts:
        context.close()
    assert [text for text in complaints if not any(word in text for word in QUIET)] == []
    assert requests and [url for url in requests if not url.startswith((f"{address}/", "data:"))] == []
