"""Pages of the wall at the desk: saved together, taken back together, durable."""

import json

import pytest

from sarb.errors import SarbError
from sarb.serve.questions import StaleError
from tests.serve.test_desk import stored


def page_of(desk, who="ann", count=5, category="red", order="likely"):
    return [question.id for question in desk.next(who, category, count, order)]


def lines(desk):
    return [json.loads(line) for line in desk._journal.path.read_text(encoding="utf-8").splitlines()]


def test_a_page_is_saved_and_taken_back_as_one(open_review):
    desk = open_review()
    single = desk.next("ann", count=1)[0]
    desk.answer("ann", single.id, "no")
    ids = page_of(desk)
    given = dict(zip(ids, ("yes", "no", "skip", "yes", "yes"), strict=True))
    for _ in range(2):  # sent twice, saved once
        desk.answer_page("ann", given, page="p1", order="likely")
    assert [line["page"] for line in lines(desk)[1:]] == ["p1"] * 5
    assert [desk.progress()[key] for key in ("yes", "no", "skip")] == [3, 2, 1]
    last = desk.progress("ann")["undo"]
    assert last == ids[-1]
    assert [question.id for question in desk.undo("ann", last)] == ids
    assert desk.undo("ann", last) == []  # sent twice
    assert desk.progress()["no"] == 1 and desk.progress()["open"] == 59
    assert page_of(desk) == ids  # asked again, in the same order
    assert desk.undo("ann") == [single]


def test_a_page_is_taken_back_after_a_restart(open_review):
    desk = open_review()
    ids = page_of(desk)
    desk.answer_page("ann", dict.fromkeys(ids, "yes"), page="p1", order="likely")
    desk.close()
    again = open_review()
    assert [question.id for question in again.undo("ann")] == ids
    again.close()
    third = open_review()
    assert third.progress()["open"] == 60 and third.undo("ann") == []


def test_what_somebody_else_has_changed_stays(open_review):
    desk = open_review()
    ids = page_of(desk)
    desk.answer_page("ann", dict.fromkeys(ids, "yes"), page="p1")
    desk.answer("bob", ids[2], "no")
    assert [question.id for question in desk.undo("ann")] == [*ids[:2], *ids[3:]]
    assert desk.progress()["no"] == 1 and desk.progress()["yes"] == 0


def test_all_or_none(open_review, monkeypatch):
    desk = open_review()
    ids = page_of(desk)
    with pytest.raises(StaleError):
        desk.answer_page("ann", {**dict.fromkeys(ids, "yes"), "0-0-0123456789": "yes"}, page="p1")
    with pytest.raises(SarbError, match="unknown answer 'nein'"):
        desk.answer_page("ann", {ids[0]: "yes", ids[1]: "nein"}, page="p1")

    def full(entries):
        raise SarbError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(desk._journal, "append", full)
        with pytest.raises(SarbError, match="no space"):
            desk.answer_page("ann", dict.fromkeys(ids, "yes"), page="p1")
    assert desk.progress()["open"] == 60 and lines(desk) == []
    assert set(stored(desk).values()) == {-1, 0, 1}


def test_another_order_lets_go_of_what_was_held(open_review):
    desk = open_review()
    page_of(desk, "ann", 12)  # all of red
    assert page_of(desk, "bob", 12) == []
    assert {question.label for question in desk.next("ann", "blue", 4)} == {"blue"}
    assert len(page_of(desk, "bob", 12)) == 12


def test_photos_ahead_are_named_but_not_held(open_review):
    desk = open_review()
    held = desk.next("ann", "red", 4, "likely")
    ahead = desk.ahead("ann", "red", 4, "likely")
    following = [question.image for question in desk.next("bob", "red", 4, "likely")]
    assert ahead == following and not set(ahead) & {question.image for question in held}


def test_orders_need_one_category_and_a_known_name(open_review):
    desk = open_review()
    with pytest.raises(SarbError, match="order 'likely' is for one category"):
        desk.next("ann", None, 4, "likely")
    with pytest.raises(SarbError, match=r"unknown order 'likly'\. Did you mean 'likely'"):
        desk.next("ann", "red", 4, "likly")


def test_a_page_by_the_api(client, desk):
    ask = {"who": "ann", "category": "red", "order": "doubtful", "count": 5, "ahead": 3}
    reply = client.post("/api/review/next", json=ask).json()
    ids = [question["id"] for question in reply["next"]]
    assert len(ids) == 5 and len(reply["ahead"]) == 3
    answers = dict.fromkeys(ids, "no")
    ahead = reply["ahead"]
    reply = client.post("/api/review/page", json={**ask, "page": "p", "answers": answers}).json()
    assert reply["progress"]["no"] == 5 and reply["progress"]["undo"] == ids[-1]
    assert [question["image"] for question in reply["next"]][:3] == ahead
    assert {(line["order"], line["assisted"]) for line in lines(desk)} == {("doubtful", False)}
    reply = client.post("/api/review/undo", json={**ask, "question": ids[-1]}).json()
    assert [question["id"] for question in reply["undone"]] == ids == [q["id"] for q in reply["next"]]
    for wrong in (
        {"answers": {}},
        {"page": ""},
        {"order": "any"},
        {"answers": dict.fromkeys(map(str, range(51)), "no")},
    ):
        body = {**ask, "page": "p", "answers": answers, **wrong}
        assert client.post("/api/review/page", json=body).status_code == 422
