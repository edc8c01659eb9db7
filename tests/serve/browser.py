"""The browser of the tests, and what they do with a page: ask it, press a key, look at its pictures."""

import csv
import os
import shutil
import time
from pathlib import Path

#: names on the PATH; .ci/chromium looks for the same
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = os.environ.get("SARB_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
MISSING = (
    "no Chromium on this computer. To run them, install it (Debian: apt-get install chromium), "
    "or set SARB_CHROMIUM to the path of Chromium or Chrome"
)
#: Root needs the first; the others keep the browser from asking hosts that tests have no business with.
FLAGS = (
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
#: Seconds to wait for a condition. A busy machine is slow; a condition that holds is seen at once.
PATIENCE = 120


def keep(page, name):
    if folder := os.environ.get("SARB_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def until(page, expression, argument=None):
    """Wait until an expression is true; the page's policy forbids the browser's own way to wait."""
    _poll(page, lambda: page.evaluate(expression, argument), expression)


def _poll(page, condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"never true: {what}"
        page.wait_for_timeout(20)  # unlike time.sleep, lets the routes of the test answer


SHOWN = """before => {
  const question = document.getElementById("picture").dataset.question;
  return (question && question !== before) || !document.getElementById("done").hidden;
}"""


def asked(page):
    """Wait for the photo and return (file name, label) of the question; None at the end."""
    until(page, SHOWN)
    return (
        (page.inner_text("#file"), page.inner_text("#question b"))
        if page.locator("#card").is_visible()
        else None
    )


FULL = """before => {
  const tiles = [...document.querySelectorAll("#tiles button")];
  const ready = tiles.length > 0 && tiles.every((tile) => tile.dataset.state === "ready");
  const changed = tiles.length > 0 && tiles[0].dataset.question !== before;
  const seen = document.getElementById("tiles").dataset.seen;
  return (ready && changed && seen && !document.getElementById("tiles-card").hidden)
    || !document.getElementById("wall-done").hidden;
}"""


def on_the_wall(page, before=None):
    """Wait for a page of the wall that takes answers, not the one with ``before``; return its question ids."""
    until(page, FULL, before)
    if not page.locator("#tiles-card").is_visible():
        return []
    return page.locator("#tiles button").evaluate_all("tiles => tiles.map((tile) => tile.dataset.question)")


def answer_page(page):
    """Press Enter and wait for the next page; return its question ids."""
    before = page.locator("#tiles button").first.get_attribute("data-question")
    page.keyboard.press("Enter")
    return on_the_wall(page, before)


def press(page, key):
    """Press a key and wait until the next question, or the end, is shown and everything is saved."""
    before = page.evaluate("document.getElementById('picture').dataset.question")
    page.keyboard.press(key)
    until(page, SHOWN, before)
    from playwright.sync_api import expect

    expect(page.locator("#saved")).to_contain_text("Saved.")


def codes(desk):
    """(file, label) -> code in the CSV."""
    desk.saver.save()
    with desk.out.open(newline="", encoding="utf-8") as file:
        return {
            (row["file_name"], name): row[name]
            for row in csv.DictReader(file)
            for name in row
            if name != "file_name"
        }


def pixels(page, canvas="article canvas"):
    return page.locator(canvas).first.evaluate("canvas => canvas.toDataURL()")


def drawn(page, right, canvas="article canvas"):
    """Wait until the pixels of a canvas are right, and return them."""
    found = []

    def look():
        found[:] = [pixels(page, canvas)]
        return right(found[0])

    _poll(page, look, "the picture is right")
    return found[0]
