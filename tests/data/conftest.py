"""The messages of the readers are checked as the command line prints them: options are ``-o name=value``."""

from collections.abc import Iterator

import pytest

from sarb.errors import command_line


@pytest.fixture(autouse=True)
def _at_the_command_line() -> Iterator[None]:
    with command_line():
        yield
