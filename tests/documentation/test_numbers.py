"""Tables of README and docs are those of the committed CSV files."""

import re

import pytest
from benchmarks.tables import TABLES

from tests.documentation.tools import ROOT

TABLE = re.compile(r"<!-- table:(?P<name>[\w-]+) -->\n(?P<text>.*?)\n<!-- /table -->", re.S)
PAGES = {
    "README.md": ("headline", "demo"),
    "docs/audit.md": ("audit", "audit-scenes5"),
    "docs/suggest.md": ("suggest",),
    "docs/field.md": ("on-top-coco256", "on-top-scenes5"),
    "docs/scaling.md": ("capacity-costs", "capacity-check", "capacity-examples"),
}
PAGES["docs/results.md"] = tuple(set(TABLES) - {name for names in PAGES.values() for name in names})


@pytest.mark.parametrize("page", PAGES)
def test_the_tables_of_a_page_come_from_the_csv(page):
    found = {
        match["name"]: match["text"] for match in TABLE.finditer((ROOT / page).read_text(encoding="utf-8"))
    }
    assert set(found) == set(PAGES[page])
    for name, text in found.items():
        assert text == TABLES[name](), f"{page}: table {name}; run python -m benchmarks.tables"
