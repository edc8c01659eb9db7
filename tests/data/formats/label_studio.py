"""Label Studio's JSON export: two Choices; tasks skipped, not annotated, or annotated twice differently."""

import json
from pathlib import Path
from typing import Any

from tests.data.fixtures import write_image
from tests.data.formats import Example

WHEN = "2024-03-09T21:52:49.513742Z"


def result(control: str, choices: list[Any], number: int = 0) -> dict[str, Any]:
    """One answer."""
    where = {"id": f"Dx_aB91IS{number}", "type": "choices", "from_name": control, "to_name": "image"}
    return {"value": {"choices": choices}, **where, "origin": "manual"}


def annotation(number: int, *results: dict[str, Any], cancelled: bool = False) -> dict[str, Any]:
    """What one person said of one task."""
    return {
        "id": number,
        "completed_by": 1 + number % 3,
        "result": list(results),
        "was_cancelled": cancelled,
        "ground_truth": False,
        "created_at": WHEN,
        "updated_at": WHEN,
        "draft_created_at": None,
        "lead_time": 4.288,
        "prediction": {},
        "result_count": len(results),
        "unique_id": f"2c6e33c2-0000-4000-8000-{number:012d}",
        "import_id": None,
        "last_action": None,
        "bulk_created": False,
        "task": number // 10,
        "project": 3,
        "updated_by": 1,
        "parent_prediction": None,
        "parent_annotation": None,
        "last_created_by": None,
    }


def task(
    number: int, image: str, *annotations: dict[str, Any], predictions: tuple[Any, ...] = ()
) -> dict[str, Any]:
    """One element of the export."""
    skipped = sum(item["was_cancelled"] for item in annotations)
    return {
        "id": number,
        "annotations": list(annotations),
        "file_upload": Path(image).name,
        "drafts": [],
        "predictions": list(predictions),
        "data": {"image": image},
        "meta": {},
        "created_at": WHEN,
        "updated_at": WHEN,
        "allow_skip": True,
        "inner_id": number,
        "total_annotations": len(annotations) - skipped,
        "cancelled_annotations": skipped,
        "total_predictions": len(predictions),
        "comment_count": 0,
        "unresolved_comment_count": 0,
        "last_comment_updated_at": None,
        "project": 3,
        "updated_by": 1,
        "comment_authors": [],
    }


def tasks() -> list[dict[str, Any]]:
    """The six tasks of the example."""
    guess = {
        "id": 1,
        "model_version": "one",
        "score": 0.9,
        "result": [result("things", ["cat", "dog", "tree"])],
    }
    blurred = result("sharp", ["no"])
    return [
        task(1, "/data/upload/3/0a1b2c3d-a.jpg", annotation(10, result("things", ["cat", "dog"]), blurred)),
        task(2, "/data/upload/3/1b2c3d4e-b.jpg", annotation(20, result("things", ["tree"]))),
        task(3, "/data/local-files/?d=more/caf%C3%A9%201.jpg", annotation(30, result("sharp", ["yes"]))),
        task(
            4,
            "https://example.com/some/d.jpg?size=big",
            annotation(40, result("things", ["cat"]), cancelled=True),
        ),
        task(5, "s3://bucket/some/e.jpg", predictions=(guess,)),
        task(
            6,
            "f.jpg",
            annotation(60, result("things", ["cat", "tree"])),
            annotation(61, result("things", ["cat"])),
        ),
    ]


def example(root: Path) -> Example:
    names = ["0a1b2c3d-a.jpg", "b.jpg", "more/café 1.jpg", "d.jpg", "e.jpg", "f.jpg"]
    for number, name in enumerate(names):
        write_image(root / "images" / name, number, (8, 8))
    file = root / "project-3-at-2024-03-09-21-52-0a1b2c3d.json"
    file.write_text(json.dumps(tasks(), indent=2, ensure_ascii=False), encoding="utf-8")
    values = [[1, 1, -1], [-1, -1, 1], [-1, -1, -1], [0, 0, 0], [0, 0, 0], [1, -1, 0]]
    return Example(
        source=str(file),
        options={"unlisted": "absent", "annotators": "all", "control": "things", "test": 0},
        categories=["cat", "dog", "tree"],
        splits={"train": dict(zip(names, values, strict=True))},
        files=[file],
        ambiguous={
            "unlisted": [
                "-o unlisted=absent: 4 present, 7 absent, 7 unknown",
                "-o unlisted=unknown: 4 present, 0 absent, 14 unknown",
            ],
            "annotators": [
                "-o annotators=any: 5 present",
                "-o annotators=all",
                "1 unknown",
            ],
            "control": [
                "-o control=things: 6 choices",
                "-o control=sharp",
                "2 choices",
                "-o control=things,sharp",
            ],
        },
    )
