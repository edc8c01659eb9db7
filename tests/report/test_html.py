"""Templates: every value is escaped, and a forgotten one is an error."""

import pytest
from jinja2 import UndefinedError

from sarb.report import html

NASTY = "<b>\"a\" & 'b'</b>"
ESCAPED = "&lt;b&gt;&#34;a&#34; &amp; &#39;b&#39;&lt;/b&gt;"


def comparison(**values):
    return html.render(
        "comparison.html",
        **{
            "title": "",
            "summary": "",
            "notes": [],
            "terms": {},
            "numbers": None,
            "plot": None,
            "differences": None,
            "categories": None,
            **values,
        },
    )


def test_every_value_is_escaped():
    cells = [[html.Cell(NASTY, 1.5, NASTY, link=NASTY)]]
    picture = html.Plot(NASTY, NASTY, NASTY, NASTY, NASTY)
    text = comparison(
        title=NASTY, summary=NASTY, notes=[NASTY], numbers=html.Table([NASTY], cells), plot=picture
    )
    assert "<b>" not in text
    assert text.count(ESCAPED) == 13


def test_a_forgotten_value_is_an_error():
    with pytest.raises(UndefinedError, match="summary"):
        html.render("comparison.html", title="", numbers=None, plot=None)


def test_cells():
    assert html.number_cell(71.25) == html.Cell("71.2", 71.25)
    assert (
        html.number_cell(float("nan"), "best")
        == html.number_cell(None, "best")
        == html.Cell("n/a", style="best")
    )
    table = html.Table(["a"], [[html.meter_cell(61.25)], [html.meter_cell(-1.0)], [html.Cell("", 0)]])
    text = comparison(numbers=table, plot=html.Plot("", "", ""))
    assert '<td class="meter" data-value="61.25"><i style="--share:61.2"></i>61.2</td>' in text
    assert '<td class="meter" data-value="-1.0"><i style="--share:0.0"></i>-1.0</td>' in text
    assert '<td data-value="0"></td>' in text
    assert "sortable" not in text[text.index("<main>") : text.index("</main>")]
