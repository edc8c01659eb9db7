"""The JSON API, and what it refuses."""

import base64
import io
import json

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

import sarb
from sarb.data.images import decode
from sarb.serve.app import create_app
from tests.serve.conftest import HOME


def photo(size=(80, 60), form="JPEG", colour=(200, 30, 30)):
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, form)
    return buffer.getvalue()


def test_labels_of_photos(plain, recogniser):
    given = photo()
    (found,) = plain.post("/api/predict", files={"photos": ("red.jpg", given)}).json()
    scores = recogniser.model.predict([Image.open(io.BytesIO(given))])
    expected = dict(zip(scores.categories, scores.probabilities[0], strict=True))
    assert {entry["label"]: entry["probability"] for entry in found["labels"]} == pytest.approx(
        expected, abs=1e-5
    )
    chances = [entry["probability"] for entry in found["labels"]]
    assert chances == sorted(chances, reverse=True)
    assert [entry["present"] for entry in found["labels"]] == [chance >= 0.5 for chance in chances]
    height, width = found["grid"]
    assert all(len(base64.b64decode(entry["heat"])) == height * width for entry in found["labels"])
    assert (found["name"], found["width"], found["height"], found["error"]) == ("red.jpg", 80, 60, None)
    assert Image.open(io.BytesIO(base64.b64decode(found["preview"]))).size == (80, 60)


def test_a_run_with_a_calibration(run, recogniser, tmp_path):
    from sarb.labelling.calibration import Calibration
    from sarb.serve.recogniser import Recogniser

    names = recogniser.categories
    size = len(recogniser.categories)
    turned = tuple(reversed(names))
    slope = np.zeros(size)
    offset = np.linspace(-2, 2, size)
    least = np.linspace(0.9, 0.1, size)
    Calibration(turned, slope, offset, least, counts=np.zeros((2, size, 3), np.int64)).save(
        sarb.load_model(run).save(tmp_path / "model") / "thresholds.json"
    )
    calibrated = Recogniser(sarb.load_model(tmp_path))
    with TestClient(create_app(run, calibrated), base_url=HOME) as client:
        (found,) = client.post("/api/predict", files={"photos": ("red.jpg", photo())}).json()
        assert client.get("/api/info").json()["calibrated"]
    chances = dict(zip(turned, 1 / (1 + np.exp(-offset)), strict=True))
    assert {entry["label"]: entry["probability"] for entry in found["labels"]} == pytest.approx(chances)
    expected = dict(zip(turned, 1 / (1 + np.exp(-offset)) >= least, strict=True))
    assert {entry["label"]: entry["present"] for entry in found["labels"]} == expected
    assert len(set(expected.values())) == 2


def test_a_large_jpeg_is_read_as_predict_reads_it(run, recogniser, tmp_path, monkeypatch):
    """Both decode it at a fraction of its size, which changes the pixels a little."""
    file = tmp_path / "large.jpg"
    file.write_bytes(photo((512, 512)))
    looked_at = []
    look = recogniser.look
    monkeypatch.setattr(recogniser, "look", lambda picture: looked_at.append(picture) or look(picture))
    with TestClient(create_app(run, recogniser), base_url=HOME) as client:
        (found,) = client.post("/api/predict", files={"photos": ("large.jpg", file.read_bytes())}).json()
    expected = decode(file, recogniser.model.transform.least)
    assert expected.size == (128, 128) and looked_at[0].tobytes() == expected.tobytes()
    assert (found["width"], found["height"]) == (512, 512)
    scores = recogniser.model.predict([file])
    chances = dict(zip(scores.categories, scores.probabilities[0], strict=True))
    assert {entry["label"]: entry["probability"] for entry in found["labels"]} == pytest.approx(
        chances, abs=1e-6
    )


def test_a_broken_photo_among_good_ones(plain):
    files = [
        ("photos", ("no.jpg", b"hello")),
        ("photos", ("ok.tif", photo(form="TIFF"))),
        ("photos", ("empty.png", b"")),
    ]
    broken, good, empty = plain.post("/api/predict", files=files).json()
    assert broken["error"].startswith("no.jpg: not an image") and broken["labels"] == []
    assert good["error"] is None and len(good["labels"]) == 5
    assert empty["error"] == "empty.png: the file is empty"


def test_a_large_photo_is_shown_smaller(run, recogniser):
    with TestClient(create_app(run, recogniser), base_url=HOME) as client:
        (found,) = client.post(
            "/api/predict", files={"photos": ("big.png", photo((3000, 1500), "PNG"))}
        ).json()
    assert (found["width"], found["height"]) == (3000, 1500)
    assert Image.open(io.BytesIO(base64.b64decode(found["preview"]))).size == (1024, 512)


def test_too_large_an_upload(plain):
    reply = plain.post("/api/predict", files={"photos": ("big.jpg", b"x" * 300_000)})
    assert reply.status_code == 413 and "at most" in reply.json()["detail"]

    def pieces():  # no length is told
        yield b'--cut\r\nContent-Disposition: form-data; name="photos"; filename="a.jpg"\r\n\r\n'
        for _ in range(300):
            yield b"x" * 1000
        yield b"\r\n--cut--\r\n"

    reply = plain.post(
        "/api/predict", content=pieces(), headers={"content-type": "multipart/form-data; boundary=cut"}
    )
    assert reply.status_code == 413 and "at most" in reply.json()["detail"]
    many = [("photos", (f"{n}.jpg", b"")) for n in range(17)]
    assert plain.post("/api/predict", files=many).status_code == 413
    assert plain.post("/api/predict").status_code == 422


def test_what_is_served(plain, client):
    info = plain.get("/api/info").json()
    assert (info["name"], info["review"], info["report"], len(info["categories"])) == (
        "squares",
        False,
        True,
        5,
    )
    assert client.get("/api/info").json()["review"]
    assert plain.post("/api/review/next", json={"who": "ann"}).status_code == 404


def test_the_page_needs_nothing_from_elsewhere(client):
    page = client.get("/")
    assert page.status_code == 200 and "text/html" in page.headers["content-type"]
    texts = [page.text]
    for name in ("app.js", "page.js", "try.js", "review.js", "picture.js", "style.css", "icon.svg"):
        reply = client.get(f"/static/{name}")
        assert reply.status_code == 200, name
        texts.append(reply.text.replace("http://www.w3.org/2000/svg", ""))
    assert not any("http://" in text or "https://" in text or "url(" in text for text in texts)
    assert " style=" not in page.text and "onclick" not in page.text  # the policy would forbid it


def test_every_answer_has_the_headers(client):
    for path in ("/", "/api/info", "/api/images/0", "/static/app.js", "/nothing"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'self'")
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers
    policy = client.get("/report").headers["content-security-policy"]
    assert policy.startswith("default-src 'none'") and "sandbox" in policy and "http" not in policy


def test_openapi_without_a_page_from_a_cdn(client):
    described = client.get("/openapi.json").json()["paths"]
    assert {"/api/predict", "/api/review/next", "/api/review/answer", "/api/review/undo"} <= set(described)
    assert client.get("/docs").status_code == client.get("/redoc").status_code == 404


def test_the_report(plain, recogniser, tmp_path):
    assert "figures" in plain.get("/report").text
    with TestClient(create_app(tmp_path, recogniser), base_url=HOME) as client:
        assert client.get("/report").status_code == 404
        assert client.get("/api/info").json()["report"] is False


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
        "/api/images/../labels.csv",
        "/api/images/labels.csv",
        "/api/images/-1",
        "/api/images/20",
        "/api/images/0/heat/5",
        "/api/images/0/heat/-1",
        "/api/images/..%2f..%2fetc%2fpasswd",
        "/report/../config.json",
        "/config.json",
    ],
)
def test_no_file_by_its_name(client, path):
    assert client.get(path).status_code in (404, 422)


def test_pictures_by_number(client, desk):
    reply = client.get("/api/images/3")
    assert reply.headers["content-type"] == "image/jpeg"
    assert Image.open(io.BytesIO(reply.content)).size == (64, 64)
    heat = client.get("/api/images/3/heat/1").json()
    assert len(base64.b64decode(heat["heat"])) == heat["grid"][0] * heat["grid"][1]


def test_a_picture_that_has_gone(client, desk):
    desk.table.files[7].unlink()
    name = desk.table.files[7].name
    reply = client.get("/api/images/7")
    assert reply.status_code == 422 and reply.json()["detail"].endswith(f"{name}: no such file")


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9000"},
        {"origin": "file://"},
        {"origin": "https://127.0.0.1:8000"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_other_origins_are_refused(client, desk, headers):
    (question,) = desk.next("ann", count=1)
    body = {"who": "ann", "question": question.id, "answer": "yes"}
    reply = client.post("/api/review/answer", json=body, headers=headers)
    assert reply.status_code == 403 and "refused" in reply.json()["detail"]
    assert desk.progress()["yes"] == 0
    assert client.post(
        "/api/review/answer", json=body, headers={"origin": HOME, "sec-fetch-site": "same-origin"}
    ).is_success
    assert desk.progress()["yes"] == 1


def test_other_names_are_refused(client):
    reply = client.get("/api/info", headers={"host": "evil.example:8000"})
    assert reply.status_code == 421 and "evil.example" in reply.json()["detail"]
    assert client.get("/api/info", headers={"host": "localhost:8000"}).is_success


def test_a_form_of_another_site_cannot_answer(client, desk):
    (question,) = desk.next("ann", count=1)
    text = json.dumps({"who": "ann", "answer": "yes", "question": question.id})
    reply = client.post("/api/review/answer", content=text, headers={"content-type": "text/plain"})
    assert reply.status_code == 422 and desk.progress()["yes"] == 0


@pytest.mark.parametrize(("orientation", "size"), [(1, (2400, 1600)), (6, (1600, 2400))])
def test_a_large_photo_is_made_small_on_the_way_but_has_its_own_size(plain, recogniser, orientation, size):
    exif = Image.Exif()
    exif[274] = orientation
    buffer = io.BytesIO()
    Image.new("RGB", (2400, 1600), (200, 30, 30)).save(buffer, "JPEG", exif=exif)
    (found,) = plain.post("/api/predict", files={"photos": ("a.jpg", buffer.getvalue())}).json()
    assert (found["width"], found["height"]) == size
    preview = Image.open(io.BytesIO(base64.b64decode(found["preview"])))
    assert max(preview.size) == 1024 and (preview.width > preview.height) == (size[0] > size[1])


def test_a_small_file_of_many_pixels_is_refused(plain):
    buffer = io.BytesIO()
    Image.new("1", (13000, 13000)).save(buffer, "PNG")
    (found,) = plain.post("/api/predict", files={"photos": ("bomb.png", buffer.getvalue())}).json()
    assert found["error"].startswith("bomb.png: too large, 13000 × 13000 pixels would take 3380 MB of memory")


def test_busy(plain, recogniser, monkeypatch):
    from sarb.serve.turns import Decoders

    monkeypatch.setattr(recogniser, "decoders", Decoders(waiting=-2))
    reply = plain.post("/api/predict", files={"photos": ("a.jpg", photo())})
    assert reply.status_code == 503 and int(reply.headers["Retry-After"]) > 0
    assert "try again" in reply.json()["detail"]


def test_a_form_in_another_encoding_is_refused(plain):
    body = b'--x\r\nContent-Disposition: form-data; name="photos"; filename="\\ud800"\r\n\r\n1\r\n--x--\r\n'
    for charset in ("unicode_escape", "idna", "undefined"):
        kind = f"multipart/form-data; boundary=x; charset={charset}"
        reply = plain.post("/api/predict", content=body, headers={"Content-Type": kind})
        assert reply.status_code == 415
