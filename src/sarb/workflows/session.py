"""What the sub-commands do, in terms of the library: load, hide, fit, evaluate, write."""

from __future__ import annotations

import csv
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sarb.errors import ConfigError, ImageError, SarbError, check_share, unknown_name
from sarb.files import atomic_write, read_json, write_json
from sarb.labelling.calibration import Calibration, calibration_of
from sarb.labels import LabelMatrix
from sarb.registry import BACKBONES, METHODS, NETWORKS
from sarb.report import Report, write_report
from sarb.rows import ROWS, Row
from sarb.scores import Scores

#: settings that have a flag of their own
FLAGS = (
    "method",
    "network",
    "backbone",
    "epochs",
    "batch_size",
    "lr",
    "image_size",
    "seed",
    "words",
    "patience",
)


def train_session(
    *,
    source: str | None = None,
    recipe: str | None = None,
    data_options: Mapping[str, Any] | None = None,
    row: str | None = None,
    known: float = 1.0,
    mask_seed: int | None = None,
    seed: int | None = None,
    out: Path | None = None,
    valid: float | None = None,
    init: Path | None = None,
    resume: bool = False,
    assignments: Sequence[str] = (),
    given: Mapping[str, Any] | None = None,
    quiet: bool = False,
    page: bool = True,
    track: Sequence[str] = (),
) -> tuple[Path, Report]:
    """Everything behind ``sarb train``; returns the run folder and the test report. ``page=False`` draws no
    page.
    """
    from accelerate import PartialState

    from sarb.data import load, reader_name
    from sarb.settings import read_recipe, resolve, section
    from sarb.training.loop import fit
    from sarb.training.memory import keep_freed_memory
    from sarb.training.track import Trackers, track_problems
    from sarb.workflows.session_labels import calibrate_validation

    keep_freed_memory()
    options, own_data_options, problems = merge_options(row, assignments, {**(given or {}), "seed": seed})
    problems += track_problems(track)
    content = read_recipe(recipe)
    try:  # settings are checked before any data are read
        check_share("known", known)
        settings = resolve(recipe, **options)
    except ConfigError as error:
        problems += error.problems
    if source is None and "source" not in content.get("data", {}):
        problems.append("no data: add --data SRC, e.g. --data demo or --data labels.csv")
    if problems:
        raise ConfigError(problems)
    source = source or str(content["data"]["source"])
    described = {
        key: value for key, value in section(content, "data", reader_name(source)).items() if key != "source"
    }
    data_options = {**described, **(data_options or {}), **own_data_options}
    data = load(source, **data_options)
    mask = settings.seed if mask_seed is None else mask_seed
    data = data.hide(known, mask) if known < 1 else data
    folder = out or Path("runs") / f"{data.name}-{settings.method}-{round(100 * known)}"
    record = {
        "source": source,
        "options": data_options,
        "notes": data.notes,
        "known": known,
        "mask_seed": mask,
        "command": _command(recipe, source, data_options, options, known, mask, valid, init, folder),
    }
    with Trackers.of(track, folder) as trackers:
        model = fit(
            data.train,
            recipe=recipe,
            out=folder,
            valid=data.valid if valid is None else valid,
            init=init,
            resume=resume,
            progress=not quiet,
            record=record,
            track=trackers,
            **options,
        )
        if (
            not PartialState().is_main_process
        ):  # started by torchrun: the first process tests and reports for all
            raise SystemExit(0)
        cached = bool(read_json(folder / "config.json").get("cached"))
        calibrate_validation(folder, model, data.train, data.valid if valid is None else valid, cached)
        report = finish(folder, model, data.test, cache=cached, page=page)
        trackers.test(report.metrics)
    return folder, report


def _command(
    recipe: str | None,
    source: str,
    data_options: Mapping[str, Any],
    options: Mapping[str, Any],
    known: float,
    mask: int,
    valid: float | None,
    init: Path | None,
    folder: Path,
) -> str:
    """The command line that repeats a run, however it was started."""
    words = ["sarb", "train", *([recipe] if recipe else []), "--data", source]
    words += [word for key, value in data_options.items() for word in ("-o", f"{key}={value}")]
    words += ["--known", f"{known:g}", "--mask-seed", str(mask), "--out", str(folder)]
    words += [*(["--valid", f"{valid:g}"] if valid else []), *(["--init", str(init)] if init else [])]
    tables = {
        "method_options": "method.",
        "network_options": "network.",
        "backbone_options": "backbone.",
        "lr_scale": "lr.",
    }
    for name, value in options.items():
        for key, entry in value.items() if name in tables else [(name, value)]:
            text = str(entry).lower() if isinstance(entry, bool) else str(entry)
            flag = f"--{key.replace('_', '-')}"
            words += [flag, text] if name in FLAGS else ["--set", f"{tables.get(name, '')}{key}={text}"]
    return shlex.join(words)


def finish(folder: Path, model: Any, test: Any, cache: bool = False, page: bool = True) -> Report:
    """Test the last model (and the best on validation, if there is one), write scores, metrics and report."""
    from sarb.inference.prediction import match_categories, predict, readable
    from sarb.model import load_model
    from sarb.report.card import write_card
    from sarb.runs.checkpoint import read_errors, write_errors

    whole = match_categories(model, test)
    skipped = list[tuple[str, str]]()
    scores = predict(model, whole, cache=cache, skipped=skipped)
    test = readable(whole, skipped)
    report = Report.of(scores, test.labels, name=f"{folder.name}, test images")
    metrics: dict[str, Any] = json.loads(report.to_json())
    if (folder / "best").is_dir():
        best = Report.of(predict(load_model(folder / "best"), whole, cache=cache, skipped=[]), test.labels)
        metrics["best"] = {
            key: value for key, value in json.loads(best.to_json()).items() if key != "per_category"
        }
    errors = [row for row in read_errors(folder) if row["split"] != "test"]
    errors += [{"file_name": name, "reason": reason, "split": "test"} for name, reason in skipped]
    write_errors(folder, errors)
    metrics["skipped"] = {
        split: [row["split"] for row in errors].count(split) for split in ("train", "valid", "test")
    }
    scores.save(folder / "scores.npz")
    # with whole paths, so that a later report finds the pictures from anywhere
    LabelMatrix(test.labels.values, test.categories, [str(path) for path in test.paths]).save(
        folder / "test_labels.npz"
    )
    write_json(folder / "metrics.json", metrics)
    write_card(folder, model)
    report.to_csv(folder / "per_category.csv")
    if page:
        write_report(folder)
    return report


def merge_options(
    row: str | None, assignments: Sequence[str], given: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Options for ``fit``, options for the data, and problems, from row name, ``--set`` and flags; the later
    win.
    """
    from sarb.settings import parse_assignment

    problems = [unknown_name("row", row, ROWS)] if row is not None and row not in ROWS else []
    chosen = ROWS.get(row or "", Row("", ""))
    options: dict[str, Any] = {
        name: getattr(chosen, name) for name in ("network", "method") if getattr(chosen, name)
    }
    tables: dict[str, dict[str, Any]] = {
        "method": dict(chosen.method_options),
        "network": dict(chosen.network_options),
        "backbone": {},
        "lr": {},
        "data": {},
        "train": options,
    }
    for text in assignments:
        try:
            table, key, value = parse_assignment(text)
            tables[table][key] = value
        except ConfigError as error:
            problems += error.problems
    options |= {f"{name}_options": tables[name] for name in ("method", "network", "backbone")}
    options |= {"lr_scale": tables["lr"], **{key: value for key, value in given.items() if value is not None}}
    return options, tables["data"], problems


def evaluate_session(
    run: Path, source: str | None, data_options: Mapping[str, str], split: str, **options: Any
) -> Report:
    """Everything behind ``sarb evaluate``."""
    from sarb.data import load
    from sarb.inference.prediction import evaluate
    from sarb.model import load_model
    from sarb.workflows.session_labels import run_source

    model = load_model(run)
    source, data_options, _ = run_source(run, source, data_options)
    data = load(source, **data_options)
    splits = {"train": data.train, "valid": data.valid, "test": data.test}
    if split not in splits:
        raise ConfigError([unknown_name("split", split, splits)])
    chosen = splits[split]
    if chosen is None or not len(chosen):
        raise SarbError(f"{source}: has no images in split '{split}'")
    if split == "train":
        print(
            "sarb: these are images the model may have been trained on; the numbers flatter it",
            file=sys.stderr,
        )
    return replace(evaluate(model, chosen, **options), name=f"{run.resolve().name}, {split} images")


def predict_session(
    run: Path,
    images: Sequence[Path],
    out: Path | None,
    top_k: int | None,
    threshold: float | None,
    as_json: bool,
    onnx: Path | None = None,
    **options: Any,
) -> list[tuple[str, str]]:
    """Everything behind ``sarb predict``; returns the images that could not be read.

    Where the model is calibrated, probabilities are; without ``top_k`` and ``threshold`` its own thresholds
    decide.
    """
    from sarb.data.images import find_images
    from sarb.labelling.formats import both_csv

    files = find_images(images)
    skipped: list[tuple[str, str]] = []
    raw, calibration = _score(run, onnx, files, progress=len(files) > 1, skipped=skipped, **options)
    if not len(raw):
        raise ImageError("\n".join(reason for _, reason in skipped))
    scores = calibration.scores(raw) if calibration is not None else raw
    if out is not None and calibration is not None and (top_k is not None or threshold is not None):
        both_csv(raw, scores, out, top_k, threshold)
    elif out is not None:
        scores.to_csv(out, top_k=top_k, threshold=threshold)
    list_skipped(skipped, out.with_name(out.name + ".errors.csv") if out is not None else None)
    chosen = [
        [(label, p) for label, p in ranked[:top_k] if p >= (threshold or 0)]
        for ranked in scores.top(len(scores.categories) if threshold is not None else (top_k or 5))
    ]
    if calibration is not None and top_k is None and threshold is None:
        chosen = calibration.decided(raw)
        if out is None:
            print(
                "sarb: each category has a threshold of its own, the best F1 on held-out labels; "
                "--threshold 0.5 sets one for all",
                file=sys.stderr,
            )
    if as_json:
        rows = [
            {"file_name": path, "labels": dict(found)}
            for path, found in zip(scores.paths, chosen, strict=True)
        ]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    elif out is None:
        for path, found in zip(scores.paths, chosen, strict=True):
            print(
                f"{path}: "
                + (", ".join(f"{label} {p:.2f}" for label, p in found) or "nothing above the threshold")
            )
    else:
        print(f"{len(scores):,} images labelled in {out}", file=sys.stderr)
    return skipped


def _score(
    run: Path, onnx: Path | None, files: Sequence[Path], *, workers: int = 0, **options: Any
) -> tuple[Scores, Calibration | None]:
    """Scores and calibration of a model, or of an exported one, which must not load torch."""
    if onnx is not None:
        from sarb.inference.onnx import OnnxModel

        exported = OnnxModel(onnx)
        return exported.predict(files, **options), exported.calibration
    from sarb.inference.prediction import predict
    from sarb.model import load_model

    model = load_model(run)
    return predict(model, files, workers=workers, **options), calibration_of(model)


def list_skipped(skipped: Sequence[tuple[str, str]], path: Path | None = None) -> None:
    """List (file name, reason) of unreadable images on stderr and, if asked, in a file."""
    for _, reason in skipped:
        print(f"sarb: skipped: {reason}", file=sys.stderr)
    if not skipped or path is None:
        return
    with atomic_write(path) as file:
        writer = csv.writer(file)
        writer.writerow(["file_name", "reason"])
        writer.writerows(skipped)


def listing(what: str) -> dict[str, str]:
    """Name -> one line of description."""
    if what == "rows":
        return {name: _describe(row) for name, row in ROWS.items()}
    if what == "recipes":
        from sarb.settings import RECIPES, recipe_names

        return {
            name: (RECIPES / f"{name}.toml").read_text(encoding="utf-8").split("\n")[0].lstrip("# ")
            for name in recipe_names()
        }
    from sarb.data import DATASETS
    from sarb.registry import summary

    registry = {"methods": METHODS, "networks": NETWORKS, "backbones": BACKBONES, "datasets": DATASETS}[what]
    return {name: summary(target) for name, target in registry.items()}


def _describe(row: Row) -> str:
    options = {
        **{f"network.{k}": v for k, v in row.network_options.items()},
        **{f"method.{k}": v for k, v in row.method_options.items()},
    }
    return f"network {row.network}, method {row.method}" + "".join(
        f", {key}={value}" for key, value in options.items()
    )
