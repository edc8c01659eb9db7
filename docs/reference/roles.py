"""For the site: docstrings write ``:func:`name```, which Markdown shows as it stands; show the name alone."""

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):`~?([^`]+)`")


class PlainNames(griffe.Extension):
    """Takes the roles out of every docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = ROLE.sub(r"`\1`", obj.docstring.value)
