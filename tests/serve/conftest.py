"""A tiny trained run, a table of squares with gaps, and a server's parts."""

import csv
import shutil

import pytest

pytest.importorskip("fastapi", reason="needs the extra [serve]: pip install 'sarb[serve]'")

IMAGES = 20
HOME = "http://127.0.0.1:8000"


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
def open_review(recogniser, gaps):
    """Open the desk of ``gaps``, again and again; what is still open is closed at the end."""
    from sarb.serve.start import open_desk

    opened = []

    def opening(**options):
        given = {
            "labels": str(gaps / "labels.csv"),
            "options": {"encoding": "binary"},
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
