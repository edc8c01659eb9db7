from pathlib import Path

import pytest

from sarb.errors import ConfigError, DataError
from sarb.label_studio.host import Host
from sarb.workflows.label_studio_pull import Pulled, conflicts_file, pull_session


def test_wrong_options_are_errors_before_anything_is_downloaded(tmp_path):
    host = Host("http://127.0.0.1:1")
    with pytest.raises(ConfigError, match="--annotators"):
        pull_session("labels.csv", host, 1, tmp_path / "a.csv", annotators="most")
    with pytest.raises(DataError, match="expected a file that ends in"):
        pull_session("labels.csv", host, 1, tmp_path / "a.docx")


def test_what_a_pull_says():
    pulled = Pulled(Path("a.csv"), tasks=3, new={1: 2, -1: 5}, unknown=7, disputed=1, strangers=4)
    assert str(pulled) == (
        "a.csv: 3 tasks answered, 2 unknown labels are now present and 5 absent, 7 stay unknown, "
        "people disagree on 1, 4 tasks show an image that is not in the table"
    )
    assert conflicts_file(Path("x/a.csv")) == Path("x/a.csv.conflicts.csv")
