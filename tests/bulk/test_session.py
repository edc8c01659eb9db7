import errno
import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pandas
import pyarrow
import pytest
from pyarrow import parquet

import sarb
from sarb import bulk
from sarb.bulk.parts import file_of
from sarb.errors import ConfigError, DataError, SarbError
from sarb.labelling.calibration import calibrate
from sarb.labels import LabelMatrix
from sarb.runs.folder import RunFolder
from sarb.workflows.completion import complete_session
from tests.bulk.same import assert_same, content
from tests.waiting import PATIENCE, wait_until

SIZE = 20


def predict(run, images, out, **options):
    return bulk.predict(run, images, out, **{"workers": 1, "part_size": SIZE, **options})


@pytest.fixture(scope="module")
def parts(run, squares, tmp_path_factory):
    out = tmp_path_factory.mktemp("bulk") / "parts"
    predict(run, squares, out)
    return out


def calibrated(run, folder):
    """A copy of the run, calibrated on its test images."""
    shutil.copytree(run, folder)
    files = RunFolder(folder)
    labels = LabelMatrix(files.test.values, files.test.categories, files.scores.paths)
    files.write_calibration(calibrate(files.scores, labels))
    return folder


def test_parts_hold_what_predict_says(run, squares, parts):
    images = sorted(squares.glob("*.jpg"))
    table = pandas.read_parquet(parts)
    assert table["file_name"].tolist() == [str(path) for path in images]
    assert sorted(path.name for path in parts.glob("part-*")) == [file_of(0), file_of(1), file_of(2)]
    expected = sarb.predict(run, images).probabilities
    assert table.dtypes.iloc[1:].unique().tolist() == [np.float32]
    assert np.allclose(table.iloc[:, 1:].to_numpy(), expected, atol=1e-6)


def test_the_same_call_again_computes_nothing_and_changes_nothing(run, squares, parts):
    before = content(parts)
    done = predict(run, squares, parts)
    assert (done.computed, done.parts, done.images, done.rows) == (0, 3, 48, 48)
    assert content(parts) == before


def test_what_is_missing_or_damaged_is_done_again(run, squares, parts, tmp_path):
    out = tmp_path / "parts"
    shutil.copytree(parts, out)
    (out / file_of(0)).unlink()
    damaged = bytearray((out / file_of(1)).read_bytes())
    damaged[60] ^= 0xFF
    (out / file_of(1)).write_bytes(damaged)
    assert predict(run, squares, out).computed == 2
    assert_same(out, parts)


def test_a_part_of_another_place_does_not_count(run, squares, parts, tmp_path):
    out = tmp_path / "parts"
    shutil.copytree(parts, out)
    shutil.copy(out / file_of(0), out / file_of(1))
    assert predict(run, squares, out).computed == 1
    assert_same(out, parts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 8}, "other options"),
        ({"top_k": 1}, "other options"),
        ({"part_size": 10}, "parts of 20 images"),
    ],
)
def test_other_options_never_mix(run, squares, parts, options, message):
    before = content(parts)
    with pytest.raises(SarbError, match=message):
        predict(run, squares, parts, **options)
    assert content(parts) == before


def test_other_images_or_another_model_never_mix(run, squares, parts, tmp_path):
    with pytest.raises(SarbError, match=r"other images \(48 of them, now 1\)"):
        predict(run, squares / "00.jpg", parts)
    with pytest.raises(SarbError, match="another model or calibration"):
        predict(calibrated(run, tmp_path / "run"), squares, parts)


def test_parts_without_a_plan_are_left_alone(run, squares, tmp_path):
    (tmp_path / file_of(0)).write_bytes(b"somebody else's")
    with pytest.raises(SarbError, match=r"holds parts, but no _plan\.json"):
        predict(run, squares, tmp_path)


def test_unreadable_images_are_listed_and_the_others_scored(run, squares, parts, tmp_path):
    photos = tmp_path / "photos"
    shutil.copytree(squares, photos)
    (photos / "21.jpg").write_bytes(b"damaged")
    done = predict(run, photos, tmp_path / "out")
    assert (done.images, done.rows, done.unreadable) == (48, 47, 1)
    errors = parquet.read_table(tmp_path / "out" / "_errors-000001.parquet").to_pylist()
    assert [row["file_name"] for row in errors] == [str(photos / "21.jpg")]
    assert "not an image" in errors[0]["reason"] and done.reasons == (errors[0]["reason"],)
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    assert [part["unreadable"] for part in manifest["parts"]] == [0, 1, 0]
    assert len(pandas.read_parquet(tmp_path / "out")) == 47
    assert predict(run, photos, tmp_path / "out").unreadable == 1
    (tmp_path / "out" / "_errors-000001.parquet").unlink()
    assert predict(run, photos, tmp_path / "out").computed == 1


def test_long_tables(run, squares, tmp_path):
    predict(run, squares, tmp_path / "top", top_k=2)
    predict(run, squares, tmp_path / "sure", threshold=0.5)
    raw = sarb.predict(run, sorted(squares.glob("*.jpg")))
    top = pandas.read_parquet(tmp_path / "top")
    assert list(top.columns) == ["file_name", "label", "probability"] and len(top) == 96
    assert top["label"].tolist() == [name for found in raw.top(2) for name, _ in found]
    sure = pandas.read_parquet(tmp_path / "sure")
    assert len(sure) == (raw.probabilities >= 0.5).sum()


def test_an_object_store_holds_the_same_files(run, squares, parts):
    import fsspec

    store = fsspec.filesystem("memory")
    try:
        predict(run, squares, "memory://bucket/parts")
        again = predict(run, squares, "memory://bucket/parts")
        assert again.computed == 0
        found = {name.rpartition("/")[2]: store.cat(name) for name in store.find("/bucket/parts")}
        assert found == content(parts)
    finally:
        store.rm("/bucket", recursive=True)


@pytest.mark.slow
def test_workers_do_the_same_and_a_killed_one_costs_nothing(run, squares, parts, tmp_path):
    import psutil

    killed = []

    def workers():
        return [
            p
            for p in psutil.Process().children()
            if p.status() != "zombie" and "sarb.bulk.worker" in p.cmdline()
        ]

    def kill(part):
        if not killed:
            killed.extend(workers()[:1])
            killed[0].send_signal(signal.SIGKILL)

    done = predict(run, squares, tmp_path / "out", workers=2, part_size=4, watch=kill)
    assert killed and done.images == 48
    predict(run, squares, tmp_path / "alone", part_size=4)
    assert_same(tmp_path / "out", tmp_path / "alone")
    wait_until(lambda: not workers(), "the workers to end")


def test_completed_labels_are_those_of_a_file(run, squares, tmp_path):
    options = {"split": "train", "min_confidence": 0.6}
    done = bulk.complete(run, None, tmp_path / "parts", workers=1, part_size=10, **options)
    filled = complete_session(run, tmp_path / "x.csv", **options)
    expected = pandas.read_csv(tmp_path / "x.csv")
    found = pandas.read_parquet(tmp_path / "parts")
    assert list(found.columns) == list(expected.columns)
    for name in ("file_name", "label", "given", "filled", "source"):
        assert found[name].astype(str).tolist() == expected[name].tolist()
    assert np.allclose(
        found["calibrated"], expected["calibrated"], atol=2e-3
    )  # the file is made from fp16 features
    summary = filled.summary()
    for name in ("given", "filled_present", "filled_absent", "left_unknown"):
        assert done.filled[name] == summary[name]
    assert done.filled["expected_precision_absent"] == pytest.approx(
        summary["expected_precision_absent"], abs=2e-3
    )
    assert bulk.complete(run, None, tmp_path / "parts", workers=1, part_size=10, **options).computed == 0


def test_other_known_labels_are_another_plan(run, squares, tmp_path):
    first = bulk.complete(
        run, str(squares / "labels.csv"), tmp_path / "a", data_options={"encoding": "binary"}, workers=1
    )
    assert first.filled["given"] == 48 * 5
    with pytest.raises(SarbError, match="other images or labels"):
        bulk.complete(run, None, tmp_path / "a", workers=1)


def test_images_without_labels_can_be_completed(run, squares, tmp_path):
    done = bulk.complete(run, f"file://{squares}", tmp_path / "out", workers=1)
    assert (
        done.filled["given"] == 0 and done.filled["filled_present"] + done.filled["filled_absent"] == 48 * 5
    )


def test_completion_that_would_depend_on_the_parts_is_refused(run, tmp_path):
    with pytest.raises(ConfigError, match="needs a calibrated run"):
        bulk.complete(run, None, tmp_path, min_precision=0.9)


def test_precision_by_held_out_labels(run, squares, tmp_path):
    fitted = calibrated(run, tmp_path / "run")
    done = bulk.complete(fitted, None, tmp_path / "out", workers=1, part_size=10, min_precision=0.5)
    filled = complete_session(fitted, tmp_path / "x.csv", min_precision=0.5)
    assert len(done.backing) == len(filled.backing) == 10
    for ours, theirs in zip(done.backing, filled.backing, strict=True):
        assert (ours.label, ours.kind, ours.checked, ours.right) == (
            theirs.label,
            theirs.kind,
            theirs.checked,
            theirs.right,
        )
        assert abs(ours.filled - theirs.filled) <= 1  # fp16 features
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    assert [row["filled"] for row in manifest["backing"]] == [one.filled for one in done.backing]


def test_mistakes_are_found_before_the_work(run, squares, tmp_path):
    with pytest.raises(ConfigError, match="unknown engine 'rai'"):
        predict(run, squares, tmp_path / "a", engine="rai")
    with pytest.raises(ConfigError, match="is for the engine ray"):
        predict(run, squares, tmp_path / "a", address="auto")
    with pytest.raises(ConfigError, match="at least one image per part"):
        predict(run, squares, tmp_path / "a", part_size=0)
    with pytest.raises(DataError, match="no such file"):
        predict(run, tmp_path / "none", tmp_path / "a")
    assert not (tmp_path / "a" / "_plan.json").exists()


def test_a_category_called_like_the_first_column(tmp_path):
    from sarb.bulk.tables import predicted
    from sarb.labelling.calibration import Calibration

    scores = sarb.Scores([[1.0]], ["file_name"], ["a"])
    options = {"top_k": None, "threshold": None}
    with pytest.raises(DataError, match="a category is called 'file_name'"):
        predicted(scores, Calibration.identity(["file_name"]), options)
    long = predicted(scores, Calibration.identity(["file_name"]), {"top_k": None, "threshold": 0.99})
    assert long.num_rows == 0 and long.schema.field("probability").type == pyarrow.float32()


@pytest.mark.slow
def test_torchrun_gives_the_same_files(run, squares, parts, tmp_path):
    from tests.two_processes import SARB

    words = ["predict", str(run), str(squares), "--out", f"{tmp_path}/out/", "--part-size", str(SIZE)]
    subprocess.run([*SARB, *words], check=True, timeout=2 * PATIENCE, env=os.environ)
    assert_same(tmp_path / "out", parts)


def test_the_command_line_needs_no_torch_to_describe_itself():
    code = "import sys, sarb.bulk, sarb.cli.parts; assert not {'torch', 'ray', 'pyarrow'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_memory_is_of_this_process(run, squares):
    """However many workers were asked for."""
    import fsspec

    store = fsspec.filesystem("memory")
    store.put(str(squares), "/bucket/in", recursive=True)
    try:
        done = predict(run, "memory://bucket/in", "memory://bucket/out", workers=2)
        assert (done.rows, done.unreadable) == (48, 0)
        with pytest.raises(ConfigError, match="memory:// is known to this process only"):
            predict(run, "memory://bucket/in", "memory://bucket/out", engine="ray")
    finally:
        store.rm("/bucket", recursive=True)


def test_a_file_address_is_a_folder(run, squares, parts, tmp_path):
    predict(run, squares, f"file://{tmp_path}/new/out")
    assert content(tmp_path / "new" / "out") == content(parts)


@pytest.mark.parametrize("damage", [lambda file: file.unlink(), lambda file: file.write_bytes(b"")])
def test_a_lost_listing_is_written_again(run, squares, parts, tmp_path, damage):
    out = tmp_path / "parts"
    shutil.copytree(parts, out)
    (out / file_of(1)).unlink()
    damage(out / "_listing.parquet")
    assert predict(run, squares, out).computed == 1
    assert_same(out, parts)


def test_a_damaged_listing_is_named(run, squares, parts, tmp_path):
    out = tmp_path / "parts"
    shutil.copytree(parts, out)
    (out / file_of(0)).unlink()
    listing = bytearray((out / "_listing.parquet").read_bytes())
    listing[4:200] = bytes(196)
    (out / "_listing.parquet").write_bytes(listing)
    with pytest.raises(SarbError, match=r"_listing\.parquet: damaged .* remove this file and give the same"):
        predict(run, squares, out)
    (out / "_listing.parquet").unlink()
    predict(run, squares, out)
    assert_same(out, parts)


def test_no_image_and_names_that_no_table_can_hold(run, squares, tmp_path):
    (tmp_path / "list.csv").write_text("file_name\n")
    for sources in ([], [tmp_path / "list.csv"]):
        with pytest.raises(SarbError, match="no images: the sources are empty"):
            predict(run, sources, tmp_path / "out")
    assert not any((tmp_path / "out").iterdir())
    shutil.copy(os.fsencode(squares / "00.jpg"), os.fsencode(tmp_path) + b"/\xff.jpg")
    with pytest.raises(SarbError, match=r"\\xff\.jpg: this name is not UTF-8"):
        predict(run, tmp_path, tmp_path / "out")


def test_numbers_that_cannot_be(run, squares, tmp_path):
    with pytest.raises(ConfigError) as caught:
        predict(run, squares, tmp_path / "out", batch_size=0, threads=0, workers=-1)
    assert [problem.partition("=")[0] for problem in caught.value.problems] == [
        "batch_size",
        "threads",
        "workers",
    ]


def test_a_full_disk_is_one_line(monkeypatch, run, squares, tmp_path):
    from sarb.bulk.storage import Storage

    def full(self, name, content):
        raise OSError(errno.ENOSPC, "No space left on device", self.place(name))

    predict(run, squares, tmp_path / "out")
    (tmp_path / "out" / file_of(1)).unlink()
    monkeypatch.setattr(Storage, "write", full)
    with pytest.raises(SarbError, match=r"^/.*/part-000001\.parquet: No space left on device$"):
        predict(run, squares, tmp_path / "out")


def test_a_precision_does_not_depend_on_the_parts(monkeypatch, run, tmp_path):
    """The mean probability of a part with one likely label would let less likely ones pass."""
    import sarb.labelling.completion as completion

    fitted = calibrated(run, tmp_path / "run")
    monkeypatch.setattr(completion, "for_precision", lambda counts, target: np.zeros(counts.shape[1]))
    tables = []
    for size in (1, 7, 48):
        out = tmp_path / str(size)
        bulk.complete(fitted, None, out, workers=1, part_size=size, min_precision=0.3)
        tables.append(pandas.read_parquet(out)[["file_name", "label", "filled", "threshold"]])
    for table in tables[1:]:
        pandas.testing.assert_frame_equal(table, tables[0])
    assert (tables[0]["threshold"] == np.float32(0.3)).all()
