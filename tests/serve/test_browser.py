"""The real page in a real browser (headless Chromium).

Set SARB_SCREENSHOTS to a folder to keep pictures of it, and SARB_CHROMIUM to use another browser.
"""

import re

import pytest

api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'sarb[dev]'")
pytest.importorskip("uvicorn", reason="needs the extra [serve]: pip install 'sarb[serve]'")

from tests.serve.browser import (  # noqa: E402
    CHROMIUM,
    MISSING,
    PATIENCE,
    asked,
    codes,
    drawn,
    keep,
    on_the_wall,
    pixels,
    press,
    until,
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
api.expect.set_options(timeout=1000 * PATIENCE)
KNOWN = 40  # of the 100 labels of the table


def test_upload_and_hover(tab, gaps, tmp_path):
    (tmp_path / "broken.jpg").write_text("no picture")
    page = tab("try")
    page.set_input_files("#files", [gaps / "01.jpg", tmp_path / "broken.jpg"])
    labels = page.locator("article").first.locator(".labels button")
    api.expect(labels).to_have_count(5)
    api.expect(page.locator("article .error")).to_contain_text("broken.jpg: not an image")
    chances = [float(text.split(" ")[-2]) for text in page.locator(".labels .value").all_inner_texts()]
    assert chances == sorted(chances, reverse=True) and all(0 <= chance <= 100 for chance in chances)
    plain = pixels(page)
    labels.nth(1).hover()
    heated = drawn(page, lambda found: found != plain)
    keep(page, "try-hover")
    page.mouse.move(1, 1)
    drawn(page, lambda found: found == plain)
    labels.nth(0).focus()
    drawn(page, lambda found: found not in (plain, heated))
    page.keyboard.press("Tab")
    drawn(page, lambda found: found == heated)
    page.keyboard.press("Enter")  # stays
    api.expect(labels.nth(1)).to_have_attribute("aria-pressed", "true")
    labels.nth(1).blur()
    assert pixels(page) == heated


def test_a_dropped_photo(tab, gaps):
    page = tab("try")
    data = page.evaluate_handle(
        "bytes => { const data = new DataTransfer();"
        "data.items.add(new File([new Uint8Array(bytes)], 'dropped.jpg', {type: 'image/jpeg'})); return data; }",
        list((gaps / "02.jpg").read_bytes()),
    )
    page.dispatch_event("#drop", "drop", {"dataTransfer": data})
    api.expect(page.locator("article h2")).to_have_text("dropped.jpg")


def test_review_by_keyboard_undo_and_reload(tab, desk):
    page = tab("review")
    given, keys = (
        {},
        {"y": "1.0", "n": "0.0", "s": "", "ArrowRight": "1.0", "ArrowLeft": "0.0", "ArrowDown": ""},
    )
    for key, code in keys.items():
        given[asked(page)] = code
        press(page, key)
    assert len(given) == 6
    now = codes(desk)
    assert {place: now[place] for place in given} == given
    api.expect(page.locator("#counts")).to_have_text("4 answered, 2 skipped, 54 open")
    keep(page, "review")
    last = list(given)[-2:]
    page.keyboard.press("u")
    api.expect(page.locator("#counts")).to_have_text("4 answered, 1 skipped, 55 open")
    assert asked(page) == last[1]
    page.keyboard.press("ArrowUp")
    api.expect(page.locator("#counts")).to_have_text("3 answered, 1 skipped, 56 open")
    assert asked(page) == last[0] and codes(desk)[last[0]] == ""
    page.reload()
    assert asked(page) == last[0]  # goes on where it was left
    page.keyboard.press("u")  # also after a reload
    api.expect(page.locator("#counts")).to_have_text("2 answered, 1 skipped, 57 open")
    assert asked(page) == list(given)[3]


def test_the_plain_photo_first_the_opinion_on_a_key(tab, desk):
    page = tab("review")
    asked(page)
    api.expect(page.locator("#opinion")).to_be_hidden()
    api.expect(page.locator("#saved")).to_have_text(re.compile("^Answers go to "))  # nothing is saved yet
    plain = pixels(page, "#picture")
    page.keyboard.press("h")
    until(page, "document.getElementById('picture').dataset.heat === 'shown'")
    assert pixels(page, "#picture") != plain
    api.expect(page.locator("#chance")).to_have_text(re.compile(r"^The model says [\d.< ]+ %$"))
    api.expect(page.locator("#reason")).not_to_be_empty()
    page.click("#tell")  # the button does the same
    until(page, "document.getElementById('picture').dataset.heat === ''")
    assert pixels(page, "#picture") == plain
    api.expect(page.locator("#opinion")).to_be_hidden()
    press(page, "y")
    api.expect(page.locator("#told")).to_contain_text("you said yes, the model says")
    api.expect(page.locator("#opinion")).to_be_hidden()  # of the next question
    asked(page)
    press(page, "n")
    assert [line["assisted"] for line in desk._journal.read()] == [True, False]


def test_with_assistance_the_opinion_is_there_at_once(tab, desk):
    desk.assist = True
    page = tab("review")
    asked(page)
    until(page, "document.getElementById('picture').dataset.heat === 'shown'")
    api.expect(page.locator("#opinion")).to_be_visible()
    page.keyboard.press("h")
    until(page, "document.getElementById('picture').dataset.heat === ''")
    press(page, "y")
    until(page, "document.getElementById('picture').dataset.heat === 'shown'")
    assert [line["assisted"] for line in desk._journal.read()] == [True]


def test_one_category(tab, desk):
    page = tab("review")
    asked(page)
    page.select_option("#category", "green")
    api.expect(page.locator("#counts")).to_have_text("0 answered, 0 skipped, 12 open")
    api.expect(page.locator("#question b")).to_have_text("green")
    page.locator("h1").nth(1).click()
    for _ in range(12):
        assert asked(page)[1] == "green"
        press(page, "s")
    api.expect(page.locator("#done-text")).to_have_text("No open question is left for green.")
    keep(page, "review-done")
    page.click("text=Ask the 12 skipped again")
    api.expect(page.locator("#question b")).to_have_text("green")
    page.select_option("#category", "")
    api.expect(page.locator("#counts")).to_have_text("0 answered, 0 skipped, 60 open")
    assert len({asked(page)[1]}) == 1


def test_two_tabs_at_once_lose_nothing(tab, desk):
    tabs, given = [tab("review"), tab("review")], {}
    api.expect(tabs[0].locator("#counts")).to_have_text("0 answered, 0 skipped, 60 open")
    for turn in range(60):
        page = tabs[turn % 2] if turn < 40 else tabs[0]  # the second leaves early, with questions in hand
        place = asked(page)
        if place is None:
            break
        assert place not in given
        key, code = ("y", "1.0") if turn % 3 else ("n", "0.0")
        given[place] = code
        press(page, key)
    now = codes(desk)
    assert {place: now[place] for place in given} == given
    assert 56 <= len(given) <= 60 and desk.progress()["open"] == 60 - len(given)
    if len(given) < 60:
        api.expect(tabs[0].locator("#done-text")).to_contain_text("are with somebody else")
        keep(tabs[0], "review-waiting")
        while (place := asked(tabs[1])) is not None and desk.progress()["open"]:
            given[place] = "1.0"
            press(tabs[1], "y")
    assert len(given) == 60 and {place: codes(desk)[place] for place in given} == given
    assert sum(code != "" for code in codes(desk).values()) == KNOWN + 60


def test_fast_fingers(tab, desk):
    page = tab("review")
    asked(page)
    for key in "ynynynyn":
        page.keyboard.press(key)
    api.expect(page.locator("#counts")).to_have_text(re.compile(r"^[3-8] answered, 0 skipped"))
    api.expect(page.locator("#saved")).to_contain_text("Saved.")
    done = int(page.inner_text("#counts").split()[0])
    assert desk.progress()["yes"] + desk.progress()["no"] == done
    # A key that is pressed while the next question is on its way is ignored; the others count, in their order.
    keys = iter("ynynynyn")
    answers = [line["answer"][0] for line in desk._journal.read()]
    assert (
        len(answers) == done and answers[:3] == ["y", "n", "y"] and all(answer in keys for answer in answers)
    )


def test_answers_wait_for_a_server_that_cannot_be_reached(tab, desk):
    page = tab("try")
    down = []
    # The route is there before the first question: a late one may let a request through.
    page.route("**/api/**", lambda route: route.abort() if down else route.continue_())
    page.goto("/#review")
    place = asked(page)
    down.append(True)
    page.keyboard.press("y")
    api.expect(page.locator("#notice")).to_contain_text("Not saved yet, trying again")
    keep(page, "review-offline")
    assert desk.progress()["yes"] == 0
    down.clear()
    api.expect(page.locator("#counts")).to_contain_text("1 answered")
    api.expect(page.locator("#notice")).to_be_hidden()
    assert codes(desk)[place] == "1.0"


def test_a_photo_waits_for_a_server_that_cannot_be_reached(tab):
    page, lost = tab("try"), []
    page.route("**/api/images/**", lambda route: lost.append(route.request.url) or route.abort())
    page.goto("/#review")
    api.expect(page.locator("#question b")).not_to_be_empty()
    api.expect(page.locator("#picture")).to_have_attribute("data-question", "")
    page.unroute("**/api/images/**")
    assert asked(page) and lost
    api.expect(page.locator("#notice")).to_be_hidden()


@pytest.mark.parametrize(("key", "path"), [("u", "undo"), ("y", "answer")])
def test_a_reply_that_was_lost_is_not_done_twice(tab, desk, key, path):
    page, ready, lost = tab("try"), [], []

    def lose(route):
        if lost or not ready:
            route.continue_()
        else:
            lost.append(route.fetch().status)  # the server has it, the page does not know
            route.abort()

    page.route(f"**/api/review/{path}", lose)  # long before it is needed, for the same reason as above
    page.goto("/#review")
    for _ in range(3):
        asked(page)
        press(page, "y")
    ready.append(True)
    page.keyboard.press(key)
    api.expect(page.locator("#counts")).to_contain_text("2 answered" if key == "u" else "4 answered")
    said = "Answers go to" if key == "u" else "Saved."  # the second undo took nothing back
    api.expect(page.locator("#saved")).to_contain_text(said)
    assert lost == [200] and desk.progress()["yes"] == (2 if key == "u" else 4)
    lines = desk._journal.path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 4


def test_the_report(tab):
    page = tab("report")
    api.expect(page.frame_locator("#report-frame").locator("#said")).to_have_text("figures, sorted")
    keep(page, "report")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone(tab, desk, gaps, scheme):
    page = tab(
        "review",
        viewport={"width": 360, "height": 740},
        is_mobile=True,
        has_touch=True,
        device_scale_factor=2,
        color_scheme=scheme,
    )
    asked(page)
    keep(page, f"phone-review-{scheme}")
    for name in ("yes", "no", "skip", "undo"):
        box = page.locator(f"#{name}").bounding_box()
        assert box["height"] >= 44 and box["y"] + box["height"] <= 740, name  # reached without scrolling
    page.locator("#yes").tap()
    api.expect(page.locator("#counts")).to_contain_text("1 answered")
    page.goto("/#try")
    page.set_input_files("#files", [gaps / "01.jpg"])
    page.locator(".labels button").first.tap()
    until(page, "document.querySelector('article canvas').dataset.heat === 'shown'")
    keep(page, f"phone-try-{scheme}")
    page.goto("/#wall")
    on_the_wall(page)
    keep(page, f"phone-wall-{scheme}")
    tile = page.locator("#tiles button").first
    assert min(tile.bounding_box()[side] for side in ("width", "height")) >= 44
    tile.tap()
    api.expect(tile).to_have_attribute("data-answer", "no")
    save = page.locator("#answer-page").bounding_box()
    assert save["height"] >= 44 and save["y"] + save["height"] <= 740  # in view, wherever one has scrolled
    page.locator("#answer-page").tap()
    api.expect(page.locator("#wall-saved")).to_contain_text("Saved.")
    assert desk.progress()["no"] == 1
    for part in ("try", "review", "wall", "report"):
        page.goto(f"/#{part}")
        api.expect(page.locator(f"#{part}")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), part


def test_focus_can_be_seen(tab):
    page = tab("review")
    asked(page)
    place = "[document.activeElement].map(at => [at.tagName, at.id, getComputedStyle(at).outlineStyle])[0]"
    seen = []
    for _ in range(11):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(place))
    seen = [
        (name, style) for tag, name, style in seen if tag != "BODY"
    ]  # behind the last and before the first
    assert {"yes", "no", "skip", "category", "tell"} <= {name for name, _ in seen} and len(seen) >= 10
    assert {style for _, style in seen} == {"solid"}
