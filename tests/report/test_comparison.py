"""Several runs on one page."""

import re

import pytest

from sarb.errors import SarbError
from sarb.report import comparison_page


def row(name, folder, mAP, **more):
    return {"name": name, "run_dir": folder, "metrics": {"mAP": mAP, "OF1": 50.0, "CF1": 40.0, **more}}


def test_table_links_and_best(tmp_path):
    first = tmp_path / "runs" / "a b"
    first.mkdir(parents=True)
    (first / "report.html").write_text("x")
    rows = [
        row("SARB <x>", first, 61.25),
        row("SSGRL", tmp_path / "runs/none", 59.0),
        row("odd", tmp_path, None),
    ]
    text = comparison_page(rows, tmp_path / "out" / "index.html", title="A & B").read_text()
    assert '<a href="../runs/a%20b/report.html">SARB &lt;x&gt;</a>' in text and "<td>SSGRL</td>" in text
    assert (
        "<h1>A &amp; B</h1>" in text
        and "SARB &lt;x&gt; has the highest mAP, 61.2, 2.2 ahead of SSGRL." in text
    )
    assert re.search(r'<td class="best" data-value="61.25">61.2</td>', text) and "n/a" in text
    assert "https://" not in text and text.count("data:image/png") == 2


def test_no_runs_and_incomplete_rows(tmp_path):
    assert "No run has been evaluated" in comparison_page([], tmp_path / "index.html").read_text()
    with pytest.raises(SarbError, match="row 0 of the comparison lacks run_dir, metrics"):
        comparison_page([{"name": "x"}], tmp_path / "index.html")
