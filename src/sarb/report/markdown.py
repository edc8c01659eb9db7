"""Names in Markdown: text of somebody else that must not become markup, a link or a second line."""

from __future__ import annotations

import re

from sarb.errors import printable

#: most characters of a name
LONGEST = 80
#: what Markdown, HTML, and GitHub's own links of addresses and people would take for more than text
ENTITIES = {"<": "&lt;", ">": "&gt;", "@": "&#64;"}
MARKS = re.compile(r"[\\`*_\[\]|~#!$]|(?<=www)\.|:(?=//)", re.IGNORECASE)


def inline(text: str, longest: int = LONGEST) -> str:
    r"""Return a text that Markdown shows as it is, in one line of bounded length.

    >>> inline("a <b>"), inline("[x](y)\n# z"), inline("https://x.org")
    ('a &lt;b&gt;', '\\[x\\](y) \\# z', 'https\\://x.org')
    """
    line = " ".join(printable(text).split())
    line = line if len(line) <= longest else f"{line[: longest - 1]}…"
    line = re.sub(r"&(?=#?\w+;)", "&amp;", line)
    marked = MARKS.sub(lambda found: f"\\{found[0]}", line)
    return "".join(ENTITIES.get(character, character) for character in marked)
