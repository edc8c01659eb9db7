from sarb.labelling.calibration import calibrate
from sarb.report import write_report
from sarb.report.reliability import reliability
from sarb.report.sections import calibration
from sarb.runs.folder import RunFolder
from tests.report.conftest import fill_run, make_case

PNG = b"\x89PNG"


def test_draws_both_or_says_why_not():
    rows = [(0.1, 0.05, 10), (0.8, 0.9, 10)]
    both, one, none = (
        reliability(tables) for tables in ({"before": rows, "after": rows}, {"after": rows}, {})
    )
    assert all(picture.startswith(PNG) for picture in (both, one, none)) and len({both, one, none}) == 3


def test_section(tmp_path):
    fill_run(tmp_path / "run")
    assert calibration(RunFolder.read(tmp_path / "run")) is None
    scores, labels = make_case(6, 200)
    found = calibrate(scores, labels, source="<the tests>")
    found.save(tmp_path / "run" / "thresholds.json")
    page = write_report(tmp_path / "run").read_text()
    assert f"{found.figures['calibration_error']['after']:.4f}" in page and "&lt;the tests&gt;" in page
    assert "US$ or CA$" in page and (tmp_path / "run/plots/reliability.png").read_bytes().startswith(PNG)
