"""What an audit says about itself."""

import csv
import json

from sarb.health.findings import COLUMNS, Audit, Finding
from tests.health.images import images


def audit():
    data = images(["train", "test"])
    findings = [
        data.pair("exact_duplicate", 0, 1, 1.0, "same bytes"),
        data.finding("label", 1, 0.95, "given as present", label="cat"),
        Finding("similar_name", 0.8, "'cat' and 'cats'", label="cat"),
    ]
    return Audit("mine", data, findings, [("x.jpg", "x.jpg: no such file")], ["the labels of 3 images"])


def test_text_counts_and_names_leakage():
    text = str(audit())
    assert text.startswith("mine: 2 images audited, 3 findings")
    assert "1  exact duplicates, 1 of them in two splits (leakage)" in text
    assert "not judged: the labels of 3 images" in text and "blurry" not in text


def test_csv_has_one_row_per_finding(tmp_path):
    text = audit().to_csv(tmp_path / "audit.csv")
    assert (tmp_path / "audit.csv").read_text(encoding="utf-8") == text
    rows = list(csv.DictReader(text.splitlines()))
    assert tuple(rows[0]) == COLUMNS
    assert [row["kind"] for row in rows] == ["exact_duplicate", "label", "similar_name"]
    assert (rows[0]["file_name"], rows[0]["split"]) == ("0.jpg", "train")
    assert (rows[0]["other_file"], rows[0]["other_split"]) == ("1.jpg", "test")
    assert (rows[1]["label"], rows[1]["score"], rows[2]["file_name"]) == ("cat", "0.9500", "")


def test_json():
    content = json.loads(audit().to_json())
    assert (content["images"], content["skipped"], content["leaks"]) == (2, 1, 1)
    assert content["findings"]["label"] == 1 and content["findings"]["dark"] == 0
