"""The review by the JSON API: nothing is lost, refusals are clear."""

import threading

from fastapi.testclient import TestClient

import sarb
from sarb.serve.app import create_app
from tests.serve.conftest import HOME


def test_a_review_by_the_api(client, desk):
    reply = client.post("/api/review/next", json={"who": "ann", "count": 2}).json()
    first, second = reply["next"]
    assert reply["progress"]["open"] == 60 and first["reason"]
    reply = client.post(
        "/api/review/answer", json={"who": "ann", "count": 2, "question": first["id"], "answer": "no"}
    ).json()
    assert (
        reply["next"][0] == second
        and reply["progress"]["no"] == 1
        and reply["progress"]["undo"] == first["id"]
    )
    text = client.get("/api/review/file")
    assert text.headers["content-disposition"] == 'attachment; filename="reviewed.csv"'
    (row,) = [line for line in text.text.splitlines() if line.startswith(first["file_name"])]
    assert row.split(",")[first["category"] + 1] == "0.0"
    reply = client.post("/api/review/undo", json={"who": "bob"}).json()
    assert reply["undone"] == []
    reply = client.post("/api/review/undo", json={"who": "ann"}).json()
    assert reply["undone"] == [first] and reply["next"][0] == first
    assert client.get("/api/review").json()[0]["open"] == 12
    client.post("/api/review/answer", json={"who": "ann", "question": first["id"], "answer": "skip"})
    assert client.post("/api/review/reopen", json={"who": "ann"}).json()["progress"]["open"] == 60


def test_clear_refusals(client, desk):
    body = {"who": "ann", "question": "1-2-3", "answer": "yes"}
    reply = client.post("/api/review/answer", json=body)
    assert reply.status_code == 409 and "reload" in reply.json()["detail"]
    reply = client.post("/api/review/next", json={"who": "ann", "category": "bleu"})
    assert reply.status_code == 400 and "Did you mean 'blue'" in reply.json()["detail"]
    for wrong in (
        {},
        {"who": ""},
        {"who": "x" * 65},
        {"who": "ann", "count": 0},
        {"who": "ann", "count": 51},
    ):
        assert client.post("/api/review/next", json=wrong).status_code == 422


def test_a_full_disk_asks_the_sender_to_repeat(client, desk, monkeypatch):
    from sarb.serve.journal import SaveError

    (question,) = desk.next("ann", count=1)

    def full(entries):
        raise SaveError("reviewed.answers.jsonl: no space left")

    monkeypatch.setattr(desk._journal, "append", full)
    reply = client.post("/api/review/answer", json={"who": "ann", "question": question.id, "answer": "yes"})
    assert reply.status_code == 507 and "no space" in reply.json()["detail"]


def test_the_table_cannot_be_written_but_no_answer_is_lost(client, desk, monkeypatch):
    (question,) = desk.next("ann", count=1)
    right = desk.table.write

    def broken(values, out):
        raise OSError("read-only")

    with monkeypatch.context() as patch:
        patch.setattr(desk.table, "write", broken)
        body = {"who": "ann", "question": question.id, "answer": "yes"}
        assert client.post("/api/review/answer", json=body).is_success
        reply = client.get("/api/review/file")
        assert reply.status_code == 500 and reply.json()["detail"] == "read-only"
        assert (
            client.post("/api/review/next", json={"who": "ann"}).json()["progress"]["problem"] == "read-only"
        )
    assert desk.table.write == right
    assert client.get("/api/review/file").is_success


def test_two_clients_at_once(run, recogniser, desk):
    app = create_app(run, recogniser, desk)
    said = {}

    def work(who):
        client = TestClient(app, base_url=HOME)  # without its life: the desk is closed once, below
        reply = client.post("/api/review/next", json={"who": who, "count": 3}).json()
        while reply["next"]:
            question = reply["next"][0]
            said[question["file_name"], question["label"]] = answer = "yes" if who == "ann" else "no"
            body = {"who": who, "count": 3, "question": question["id"], "answer": answer}
            reply = client.post("/api/review/answer", json=body).json()

    threads = [threading.Thread(target=work, args=(who,)) for who in ("ann", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 60
    desk.close()
    data = sarb.load(desk.out, encoding="binary")
    for part in data.splits.values():
        for row, name in enumerate(part.labels.paths):
            for column, label in enumerate(part.categories):
                expected = {"yes": 1, "no": -1, None: part.labels.values[row, column]}[
                    said.get((name, label))
                ]
                assert part.labels.values[row, column] == expected != 0


def test_closing_writes_the_table(run, recogniser, desk):
    with TestClient(create_app(run, recogniser, desk), base_url=HOME) as client:
        for _ in range(5):
            question = client.post("/api/review/next", json={"who": "ann", "count": 1}).json()["next"][0]
            client.post(
                "/api/review/answer", json={"who": "ann", "question": question["id"], "answer": "yes"}
            )
    blanks = sum(line.split(",").count("") for line in desk.out.read_text(encoding="utf-8").splitlines())
    assert blanks == 55


def test_an_answer_hands_out_as_many_as_were_asked_for(client):
    (first,) = client.post("/api/review/next", json={"who": "ann", "count": 1}).json()["next"]
    given = {"who": "ann", "question": first["id"], "answer": "yes"}
    assert len(client.post("/api/review/answer", json=given).json()["next"]) == 1
    assert len(client.post("/api/review/undo", json={"who": "ann"}).json()["next"]) == 1
    assert len(client.post("/api/review/answer", json={**given, "count": 3}).json()["next"]) == 3
    assert len(client.post("/api/review/next", json={"who": "ann"}).json()["next"]) == 4
    assert client.post("/api/review/next", json={"who": "ann", "count": 0}).status_code == 422
