"""What the tests do with the page: ask it, press a key, look at its pictures."""

import csv
import os
from pathlib import Path


def keep(page, name):
    if folder := os.environ.get("SARB_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def until(page, expression, argument=None):
    """Wait until an expression is true; the browser's own way to wait is forbidden by the page's policy."""
    for _ in range(1000):
        if page.evaluate(expression, argument):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"never true: {expression}")


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
