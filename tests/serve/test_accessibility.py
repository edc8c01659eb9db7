"""All pages by axe-core in Chromium: no serious and no critical finding, in light and dark, wide and on a phone."""

from importlib import resources

import pytest

api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'sarb[dev]'")
pytest.importorskip("uvicorn", reason="needs the extra [serve]: pip install 'sarb[serve]'")
pytest.importorskip("axe_playwright_python", reason="needs axe-core: pip install 'sarb[dev]'")

import sarb  # noqa: E402
from sarb.data.check.stats import stats  # noqa: E402
from sarb.report import comparison_page, write_report  # noqa: E402
from sarb.report.data_page import data_page  # noqa: E402
from tests.report.conftest import fill_run  # noqa: E402
from tests.report.test_comparison import row  # noqa: E402
from tests.serve.browser import CHROMIUM, MISSING, PATIENCE, asked, on_the_wall  # noqa: E402

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
api.expect.set_options(timeout=1000 * PATIENCE)
AXE = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
SEVERE = ("serious", "critical")
PHONE = {"width": 360, "height": 740}
LOOKS = [
    {"color_scheme": "light"},
    {"color_scheme": "dark"},
    {"color_scheme": "light", "viewport": PHONE, "is_mobile": True, "has_touch": True},
]


def findings(page):
    """Rules that are broken badly, and where."""
    page.evaluate(AXE)
    found = page.evaluate("async () => (await axe.run(document)).violations")
    return [
        (rule["id"], node["target"], node.get("failureSummary", "").split("\n")[1:2])
        for rule in found
        if rule["impact"] in SEVERE
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark", "phone"])
def test_the_pages_of_the_server(tab, gaps, look):
    page = tab("try", **look)
    assert findings(page) == []
    page.set_input_files("#files", [gaps / "01.jpg"])
    page.locator(".labels button").nth(1).focus()
    assert findings(page) == []
    page.goto("/#review")
    asked(page)
    assert findings(page) == []
    page.keyboard.press("h")
    api.expect(page.locator("#opinion")).to_be_visible()
    page.locator("#yes").click()
    api.expect(page.locator("#saved")).to_contain_text("Saved.")
    assert findings(page) == []
    page.goto("/#wall")
    on_the_wall(page)
    page.keyboard.press(" ")
    page.keyboard.press("h")
    assert findings(page) == []
    page.keyboard.press("Enter")
    api.expect(page.locator("#wall-done")).to_be_visible()
    assert findings(page) == []
    page.goto("/#report")
    assert findings(page) == []


@pytest.fixture(scope="module")
def written(tmp_path_factory, squares):
    """Pages that are files: of a run, of data, and of several runs."""
    folder = tmp_path_factory.mktemp("pages")
    run = fill_run(folder / "run")
    rows = [row("SARB", run, 61.25), row("SSGRL", folder / "none", 59.0)]
    data = folder / "data.html"
    data.write_text(data_page(stats(sarb.load(squares / "labels.csv", encoding="binary"))), encoding="utf-8")
    return {
        "report": write_report(run),
        "data": data,
        "comparison": comparison_page(rows, folder / "comparison.html"),
    }


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark", "phone"])
@pytest.mark.parametrize("name", ["report", "data", "comparison"])
def test_the_pages_that_are_files(browser, written, name, look):
    context = browser.new_context(**look)
    page = context.new_page()
    page.goto(written[name].as_uri())
    found = findings(page)
    context.close()
    assert found == []


def test_a_bad_page_is_found(browser):
    page = browser.new_page()
    page.set_content("<main><h1>x</h1><img src='data:,'><button></button></main>")
    found = {rule for rule, *_ in findings(page)}
    page.close()
    assert {"image-alt", "button-name"} <= found
