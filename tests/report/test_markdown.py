"""A name in Markdown is text: no markup, no link, one line, bounded."""

import pytest

from sarb.report.markdown import LONGEST, inline


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("hot dog", "hot dog"),
        ("Schäferhund (2)", "Schäferhund (2)"),
        ("<script>x</script>", "&lt;script&gt;x&lt;/script&gt;"),
        ("[click](http://x)", "\\[click\\](http\\://x)"),
        ("a\n\n# heading", "a \\# heading"),
        ("a | b", "a \\| b"),
        ("www.x.org, me@x.org", "www\\.x.org, me&#64;x.org"),
        ("a\x1b[2Jb", "a\\\\u001b\\[2Jb"),
    ],
)
def test_it_is_shown_as_it_is(name, shown):
    assert inline(name) == shown


def test_a_long_name_is_cut():
    assert inline("x" * 1000) == "x" * (LONGEST - 1) + "…"
