"""The page of a run: self-contained, safe, complete, and honest about what is missing."""

import json
import re
from html.parser import HTMLParser

import pytest

from sarb.errors import SarbError
from sarb.labels import LabelMatrix
from sarb.report import write_report
from tests.report.conftest import fill_run

HEADINGS = [
    "Decisions",
    "What was trained",
    "How it learned",
    "Category by category",
    "Precision and recall",
    "Can the probabilities be trusted?",
    "What appears together",
    "Sample predictions",
    "What the numbers mean",
    "Full configuration",
]
PICTURES = {
    "loss",
    "validation",
    "alpha_beta",
    "completed",
    "per_category_ap",
    "precision_recall",
    "cooccurrence",
    "samples",
}


class Page(HTMLParser):
    """Collects tags, attributes and text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.open, self.text, self.headings = [], [], [], "", []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, key, value) for key, value in attrs]
        self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if "script" not in self.open and "style" not in self.open:
            self.text += data
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = fill_run(tmp_path_factory.mktemp("runs") / "my <run>")
    return folder, write_report(folder).read_text(encoding="utf-8")


def test_page_and_pictures_are_written(written):
    folder, text = written
    assert {path.stem for path in (folder / "plots").glob("*.png")} == PICTURES
    assert Page(text).headings == HEADINGS
    assert len(text) < 3_000_000


def test_self_contained(written):
    page = Page(written[1])
    for tag, key, value in page.attributes:
        if key in ("src", "srcset"):
            assert value.startswith("data:image/"), (tag, key)
        if key == "href":
            assert value.startswith("#"), value
    assert "link" not in page.tags and "iframe" not in page.tags
    outside = re.sub(r"data:image/[^\"]*", "", written[1])
    assert (
        "http://" not in outside
        and "https://" not in outside
        and "@import" not in outside
        and "url(" not in outside
    )


def test_user_text_is_escaped(written):
    page = Page(written[1])
    # the page's own script and the block of numbers
    assert page.tags.count("script") == 2 and "run" not in page.tags and "demo" not in page.tags
    assert (
        "<script>alert(1)</script>" in page.text and "a & \"b\" 'c'" in page.text and "my <run>" in page.text
    )
    assert any(key == "alt" and value.startswith("photo <") for _, key, value in page.attributes)


def test_numbers_are_those_of_metrics_json(written):
    folder, text = written
    stored = json.loads((folder / "metrics.json").read_text())
    cards = dict(re.findall(r'<span class="label">([^<]*)</span><span class="value">([^<]*)</span>', text))
    assert cards["mAP"] == f"{stored['mAP']:.1f}" and cards["OF1 at 0.5"] == f"{stored['OF1']:.1f}"
    assert (
        cards["mAP interpolated"] == f"{stored['mAP_interpolated']:.1f}"
        and cards["CF1 at 0.5"] == f"{stored['CF1']:.1f}"
    )
    share = LabelMatrix.load(
        folder / "labels.npz"
    ).known_share  # of labels that were not all known before hiding
    assert share < 0.6 and cards["Known labels"] == f"{100 * share:.3g} %"
    assert f"Trained with {100 * share:.3g} % of the labels" in text and "60 % requested" in text
    values = set(re.findall(r'data-value="([^"]*)"', text))
    for name in ("OP", "OR", "CP", "CR", "OF1_top3", "CF1_top3_raw"):
        assert repr(stored[name]) in values
    for row in stored["per_category"]:
        assert row["AP"] is None or repr(row["AP"]) in values


def test_settings_command_time_and_versions(written):
    text = Page(written[1]).text
    for part in ("ssgrl", "tiny", "1 min 32 s", "sarb train --data '<demo>' --known 0.6", "2.13.0"):
        assert part in text, part
    assert '"graph_smoothing": 0' in text and "(smoothing 0)" in text
    assert "1 category without a known positive" in text


def test_both_colour_schemes_and_print(written):
    text = written[1]
    assert text.count('media="screen and (prefers-color-scheme: dark)"') == 7
    assert "@media print" in text and "@media (max-width" in text


@pytest.mark.parametrize(
    ("gone", "sentence"),
    [
        ("log.csv", "no log.csv with a finished epoch"),
        ("scores.npz", "need both scores.npz and test_labels.npz"),
        ("test_labels.npz", "need both scores.npz and test_labels.npz"),
        ("labels.npz", "the folder has no labels.npz"),
        ("config.json", "The folder has no config.json"),
        ("steps.csv", "What the numbers mean"),
        ("pictures", "were moved or deleted"),
    ],
)
def test_a_missing_file_is_a_sentence(run, gone, sentence, no_pictures):
    target = run / gone
    if target.is_dir():
        target.rename(run / "elsewhere")
    else:
        target.unlink()
    text = Page(write_report(run).read_text()).text
    assert sentence in text
    assert "mAP" in text and "Category by category" in text


def test_without_metrics_they_are_measured_again_from_the_scores(run, no_pictures):
    stored = json.loads((run / "metrics.json").read_text())
    (run / "metrics.json").unlink()
    assert f'<span class="value">{stored["mAP"]:.1f}</span>' in write_report(run).read_text()
    (run / "scores.npz").unlink()
    assert "has not been evaluated yet" in write_report(run).read_text()


def test_without_scores_the_rows_of_metrics_json_are_shown(run, no_pictures):
    (run / "scores.npz").unlink()
    text = Page(write_report(run).read_text()).text
    assert "US$ or CA$" in text


def test_the_best_epoch_is_shown_beside_the_last(run, no_pictures):
    stored = json.loads((run / "metrics.json").read_text())
    stored["best"] = {"mAP": 98.76, "mAP_interpolated": None, "OF1": 1.0}
    (run / "metrics.json").write_text(json.dumps(stored))
    text = Page(write_report(run).read_text()).text
    assert "best epoch on the validation images" in text and "98.8" in text


LADDER = """rung,kept,seconds,mean_ap,loss,gain,low,high,weight,mean_ap_low,mean_ap_high,ahead,ahead_low,ahead_high
features,True,4.51,,,,,,,,,,,
ten lines,False,0.1,37.5,0.86,0.14,0.1,0.18,0.01,33.1,41.9,nan,nan,nan
probe,True,0.288639,39.423869,0.842996,0.173794,0.126474,0.223483,0.03,35.0,43.7,1.9,0.4,3.3
residual,False,0.03411,nan,0.791976,-0.009247,-0.022182,0.003651,1.5,nan,nan,nan,nan,nan
final,True,0.0,39.4,0.84,0.0193,0.0022,0.0351,nan,35.0,43.7,1.9,0.4,3.3
"""


def test_a_fitted_run_shows_its_ladder_instead_of_curves(run, no_pictures):
    (run / "log.csv").write_text(LADDER)
    (run / "steps.csv").unlink()
    page = write_report(run).read_text()
    found = page.split("The ladder</h3>")[1].split("</table>")[0]
    rows = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in found.split("<tr>")[2:]]
    assert re.findall(r"<th[^>]*>([^<]*)</th>", found)[:3] == ["rung", "decision", "mAP"]
    gain = "+0.1265 to +0.2235"
    assert rows == [
        ["features", "kept", "–", "–", "–", "–", "–", "–", "4.5"],
        [
            "ten lines",
            "baseline",
            "37.5",
            "33.1 to 41.9",
            "0.8600",
            "+0.1400",
            "+0.1000 to +0.1800",
            "0.01",
            "0.1",
        ],
        ["probe", "kept", "39.4", "35.0 to 43.7", "0.8430", "+0.1738", gain, "0.03", "0.3"],
        ["residual", "left out", "–", "–", "0.7920", "-0.0092", "-0.0222 to +0.0037", "1.5", "0.0"],
        ["final", "the model", "39.4", "35.0 to 43.7", "0.8400", "+0.0193", "+0.0022 to +0.0351", "–", "0.0"],
    ]
    assert "ten lines of scikit-learn 37.5 (+1.9, 95 % interval +0.4 to +3.3)" in found
    assert found.count("<img") == 1
    text = Page(page).text
    assert "Mean loss per epoch" not in text and "no curves: the folder has no log.csv" not in text
    assert "<dt>Epochs</dt>" not in page and "<dt>Learning rate</dt>" not in page
    assert "<dd>5 s</dd>" in page


def test_a_ladder_without_baseline_and_intervals_is_shown_too(run, no_pictures):
    """As earlier versions wrote it."""
    (run / "log.csv").write_text(
        "rung,kept,seconds,mean_ap,loss,gain,low,high,weight\nprobe,True,0.3,39.4,0.84,0.17,0.12,0.22,0.03\n"
    )
    page = write_report(run).read_text()
    assert "<td>39.4</td><td>–</td>" in page.split("The ladder</h3>")[1]


def test_a_trained_run_has_no_ladder(written):
    assert "The ladder" not in written[1] and "<dt>Epochs</dt>" in written[1]


@pytest.mark.parametrize("count", [1, 90])
def test_one_category_and_many(tmp_path, count, no_pictures):
    text = write_report(fill_run(tmp_path / "run", count, with_pictures=False)).read_text()
    assert len(text) < 3_000_000
    assert ("only one category" in text) == (count == 1)
    assert ("too many categories to show" in text) == (count == 90)


def test_what_is_no_run_folder_is_one_clear_error(tmp_path, run):
    with pytest.raises(SarbError, match="no such folder"):
        write_report(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SarbError, match=r"holds none of config\.json"):
        write_report(tmp_path / "empty")
    (run / "scores.npz").write_bytes(b"PK\x03\x04 broken")
    with pytest.raises(SarbError, match=r"scores\.npz: cannot read"):
        write_report(run)


def test_the_known_share_is_the_true_one(run, no_pictures):
    """A table with gaps of its own, of which nothing was hidden."""
    config = json.loads((run / "config.json").read_text())
    config["data"] |= {"known": 1.0, "known_share": 0.72}
    (run / "config.json").write_text(json.dumps(config))
    share = LabelMatrix.load(run / "labels.npz").known_share
    assert f"Trained with {100 * share:.3g} % of the labels" in write_report(run).read_text()
    assert "requested" not in write_report(run).read_text()
    (run / "labels.npz").unlink()
    assert "Trained with 72 % of the labels" in write_report(run).read_text()


def test_few_positives_are_a_caution(run, no_pictures):
    positives = int(LabelMatrix.load(run / "test_labels.npz").positives.sum())
    text = write_report(run).read_text()
    assert (f"rough: only {positives} known positives in the test images" in text) == (positives < 100)
    metrics = json.loads((run / "metrics.json").read_text())
    for name in ("scores.npz", "test_labels.npz"):
        (run / name).unlink()
    for row in metrics["per_category"]:
        row["positives"] = 3
    (run / "metrics.json").write_text(json.dumps(metrics))
    few = 3 * len(metrics["per_category"])
    assert f"rough: only {few} known positives in the test images" in write_report(run).read_text()
