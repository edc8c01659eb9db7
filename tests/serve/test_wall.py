"""The wall in a real browser: mark, answer a page, take it back, reload, two people."""

import re
from collections import Counter

import numpy as np
import pytest

api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'sarb[dev]'")
pytest.importorskip("uvicorn", reason="needs the extra [serve]: pip install 'sarb[serve]'")

from tests.serve.browser import (  # noqa: E402
    CHROMIUM,
    MISSING,
    PATIENCE,
    answer_page,
    codes,
    keep,
    on_the_wall,
    press,
    until,
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
api.expect.set_options(timeout=1000 * PATIENCE)


@pytest.fixture
def desk(open_review, crowd):
    return open_review(labels=str(crowd))


def asked(desk, ids):
    """(file, label) of questions."""
    found = [desk.questions[desk.questions.entry_with_id(ident)] for ident in ids]
    return [(question.file_name, question.label) for question in found]


def answers(desk, ids):
    table = codes(desk)
    return [{"1.0": "yes", "0.0": "no", "": "open"}[table[place]] for place in asked(desk, ids)]


def shown(page):
    return page.locator("#tiles button").evaluate_all("tiles => tiles.map((tile) => tile.dataset.answer)")


def test_a_page_by_keyboard_undo_and_the_end(tab, desk):
    page = tab("wall")
    first = on_the_wall(page)
    assert len(first) == 24 and {label for _, label in asked(desk, first)} == {"red"}
    api.expect(page.locator("#wall-question")).to_have_text("Mark the photos that do not show red.")
    api.expect(page.locator("#wall-saved")).to_have_text(re.compile("^Answers go to "))
    for key in ("ArrowRight", " ", "ArrowDown", " ", " ", "ArrowLeft", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)
    expected = ["yes"] * 24
    expected[1], expected[7] = "no", "skip"  # six in a row
    assert shown(page) == expected
    api.expect(page.locator("#answer-text")).to_have_text("22 yes, 1 no, 1 not sure")
    keep(page, "wall")
    second = answer_page(page)
    api.expect(page.locator("#wall-saved")).to_contain_text("Saved.")
    api.expect(page.locator("#wall-counts")).to_have_text("23 answered, 1 skipped, 12 open")
    assert answers(desk, first) == [answer.replace("skip", "open") for answer in expected]
    assert len(second) == 12 and shown(page) == ["yes"] * 12
    page.keyboard.press("u")
    api.expect(page.locator("#wall-counts")).to_have_text("0 answered, 0 skipped, 36 open")
    api.expect(page.locator("#wall-saved")).to_have_text("24 answers taken back.")
    assert on_the_wall(page) == first and shown(page) == expected  # marked as before
    assert answers(desk, first) == ["open"] * 24
    assert answer_page(page) == second
    page.keyboard.press("f")
    api.expect(page.locator("#wall-question")).to_have_text("Mark the photos that show red.")
    assert shown(page) == ["no"] * 12
    assert answer_page(page) == [] and answers(desk, second) == ["no"] * 12
    api.expect(page.locator("#wall-done-text")).to_have_text("No photo is left for red.")
    page.click("text=Go on with green")
    assert {label for _, label in asked(desk, on_the_wall(page))} == {"green"}


def test_a_thumbnail_that_is_in_use_is_not_forgotten(tab):
    kept = tab("try").evaluate("""async () => {
      const { Thumbnails } = await import("/static/thumbnails.js");
      const thumbnails = new Thumbnails(() => {});
      for (let number = 0; number < 54; number += 1) thumbnails.of(number);
      const first = thumbnails.of(0); // on the page again
      thumbnails.of(54);
      return [thumbnails.of(0) === first, thumbnails.images.has(1), thumbnails.images.size];
    }""")
    assert kept == [True, False, 54]


def test_the_whole_table_page_by_page(tab, desk):
    page = tab("wall")
    for name in desk.categories:
        page.select_option("#wall-category", name)
        until(page, "name => document.querySelector('#wall-question').textContent.includes(name)", name)
        ids = on_the_wall(page)
        assert {label for _, label in asked(desk, ids)} == {name}
        page.evaluate("document.activeElement.blur()")
        assert len(answer_page(page)) == 12 and answer_page(page) == []
    assert desk.progress()["yes"] == 180


def test_likely_or_doubtful_first(tab, desk):
    desk.questions.probabilities[:] = np.random.RandomState(0).random_sample(
        desk.questions.probabilities.shape
    )
    page = tab("wall")
    before = None
    for order, rank in (("likely", lambda p: -p), ("doubtful", lambda p: abs(p - 0.5))):
        page.select_option("#wall-order", order)
        entries = desk.questions.in_order(desk.questions.column("red")).tolist()
        ranks = sorted(rank(desk.questions[entry].probability) for entry in entries)
        ids = on_the_wall(page, before)
        found = [desk.questions[desk.questions.entry_with_id(ident)].probability for ident in ids]
        assert [rank(p) for p in found] == ranks[:24]
        before = ids[0]
    answer_page(page)
    lines = list(desk._journal.read())
    assert {line["order"] for line in lines} == {"doubtful"} and len(lines) == 24
    assert len({line["page"] for line in lines}) == 1
    assert [line["assisted"] for line in lines] == [False] * 24


def test_an_order_chosen_before_the_categories_are_there(tab, desk):
    page = tab("try")
    held = []
    page.route("**/api/review", lambda route: held.append(route))
    with page.expect_request("**/api/review"):
        page.click("nav a[href='#wall']")
    page.select_option("#wall-order", "doubtful")  # asks nothing yet; a bad request would fail the fixture
    held[0].continue_()
    on_the_wall(page)
    assert page.locator("#wall-order").input_value() == "doubtful"


def test_the_keys_work_wherever_the_focus_is(tab, desk):
    page = tab("try")
    page.click("nav a[href='#wall']")
    on_the_wall(page)
    page.keyboard.press(" ")
    assert shown(page)[:2] == ["no", "yes"]
    page.click("h1 >> nth=2")  # beside the tiles
    page.keyboard.press(" ")
    assert shown(page)[:2] == ["skip", "yes"]
    page.locator("nav a").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press(" ")
    assert shown(page)[:3] == ["skip", "no", "yes"]
    first = on_the_wall(page)
    page.click("#answer-page")
    on_the_wall(page, first[0])
    page.keyboard.press(" ")  # marks a photo, and does not press the button again
    assert shown(page)[0] == "no" and desk.progress()["yes"] == 22


def test_marks_and_page_survive_a_reload(tab, desk):
    page = tab("wall")
    page.select_option("#wall-category", "blue")
    until(page, "document.querySelector('#wall-question').textContent.includes('blue')")
    first = on_the_wall(page)
    page.locator("#tiles button").nth(3).click()
    page.reload()
    assert on_the_wall(page) == first
    assert shown(page) == ["yes"] * 3 + ["no"] + ["yes"] * 20
    answer_page(page)
    page.reload()
    on_the_wall(page)
    page.keyboard.press("u")  # also after a reload
    api.expect(page.locator("#wall-counts")).to_have_text("0 answered, 0 skipped, 36 open")
    assert on_the_wall(page) == first and shown(page)[3] == "no"


def test_two_walls_share_no_photo(tab, desk):
    ann, bob = tab("wall"), tab("wall")
    hers, his = on_the_wall(ann), on_the_wall(bob)
    assert len(hers) == 24 and len(his) == 12 and not set(hers) & set(his)
    assert answer_page(ann) == []  # the rest is with Bob
    api.expect(ann.locator("#wall-done-text")).to_contain_text("are with somebody else (12 left)")
    answer_page(bob)
    counts = Counter((line["file_name"], line["label"]) for line in desk._journal.read())
    assert len(counts) == 36 and set(counts.values()) == {1}


def test_answers_wait_for_a_server_that_cannot_be_reached_and_count_once(tab, desk):
    page, state = tab("try"), {"down": False, "lost": []}

    def pulled(route):
        if state["down"]:
            state["lost"].append(route.fetch().status)  # the server has it, the page does not know
            state["down"] = False
            route.abort()
        else:
            route.continue_()

    page.route("**/api/review/page", pulled)
    page.goto("/#wall")
    first = on_the_wall(page)
    state["down"] = True
    page.keyboard.press("Enter")
    api.expect(page.locator("#wall-saved")).to_contain_text("Saved.")
    assert state["lost"] == [200] and answers(desk, first) == ["yes"] * 24
    assert len(list(desk._journal.read())) == 24


def test_a_second_enter_does_not_answer_a_page_unseen(tab, desk):
    page = tab("wall")
    on_the_wall(page)
    page.evaluate("""() => {
      const enter = () => document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true}));
      enter(); enter();
    }""")
    api.expect(page.locator("#wall-saved")).to_contain_text("Saved.")
    assert desk.progress()["yes"] == 24


def test_the_opinion_on_a_key_is_noted(tab, desk):
    page = tab("wall")
    first = on_the_wall(page)
    chances = page.locator("#tiles .chance")
    assert set(chances.all_inner_texts()) == {""}
    page.keyboard.press("h")
    api.expect(chances.first).to_have_text(re.compile("%"))
    page.keyboard.press("h")
    answer_page(page)
    assert {line["assisted"] for line in desk._journal.read()} == {True} and len(first) == 24


def test_a_photo_that_is_gone_is_skipped(tab, desk):
    page = tab("try")
    first = desk.questions.in_order(desk.questions.column("red"), "likely").tolist()
    gone = desk.questions[first[2]]
    desk.table.files[gone.image].unlink()
    page.goto("/#wall")
    ids = on_the_wall(page)
    api.expect(page.locator("#tiles button").nth(2)).to_contain_text("cannot be shown")
    answer_page(page)
    assert answers(desk, ids)[2] == "open" and desk.progress()["skip"] == 1


def test_an_undo_in_review_takes_the_page_back(tab, desk):
    page = tab("wall")
    first = on_the_wall(page)
    answer_page(page)
    page.goto("/#review")
    until(page, "document.getElementById('picture').dataset.question")
    press(page, "y")
    page.keyboard.press("u")
    api.expect(page.locator("#saved")).to_have_text("Taken back.")
    page.keyboard.press("u")
    api.expect(page.locator("#saved")).to_have_text("24 answers taken back.")
    assert answers(desk, first) == ["open"] * 24
