"""NUS-WIDE in its official folders: three of 81 concepts, and the damaged line of Labels_lake_Train.txt."""

from pathlib import Path

from tests.data.fixtures import write_image
from tests.data.formats import Example

#: concept -> lines of the training and of the test file
LABELS = {
    "airport": ("1\n0\n0\n", "0\n1\n"),
    "lake": ("0\n1\n-1130179\n", "1\n1\n"),
    "sky": ("1\n1\n0\n", "0\n0\n"),
}
LISTS = {
    "Train": ["actor\\0001_2124494179.jpg", "actor\\0002_174174086.jpg", "zoos\\0003_1971358407.jpg"],
    "Test": ["airport\\0004_1971366811.jpg", "lake\\0005_2124494181.jpg"],
}


def example(root: Path) -> Example:
    for folder in ("Groundtruth/TrainTestLabels", "Groundtruth/AllLabels", "ImageList", "ConceptsList"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    files = [root / "ConceptsList" / "Concepts81.txt"]
    files[0].write_text("".join(f"{concept}\n" for concept in LABELS))
    for number, (split, names) in enumerate(LISTS.items()):
        files.append(root / "ImageList" / f"{split}Imagelist.txt")
        files[-1].write_text("".join(f"{name}\n" for name in names))
        for concept, text in LABELS.items():
            files.append(root / "Groundtruth" / "TrainTestLabels" / f"Labels_{concept}_{split}.txt")
            files[-1].write_text(text[number])
        for name in names:
            write_image(root / "Flickr" / name.replace("\\", "/"), int(name[-8:-4]), (8, 8))
    for concept, (train, test) in LABELS.items():
        (root / "Groundtruth" / "AllLabels" / f"Labels_{concept}.txt").write_text(train + test)
    (root / "ImageList" / "Imagelist.txt").write_text(
        "".join(f"{name}\n" for names in LISTS.values() for name in names)
    )
    return Example(
        source=f"nus_wide:{root}",
        options={"damaged": "unknown"},
        categories=["airport", "lake", "sky"],
        splits={
            "train": {
                "actor/0001_2124494179.jpg": [1, -1, 1],
                "actor/0002_174174086.jpg": [-1, 1, 1],
                "zoos/0003_1971358407.jpg": [-1, 0, -1],
            },
            "test": {"airport/0004_1971366811.jpg": [-1, 1, -1], "lake/0005_2124494181.jpg": [1, 1, -1]},
        },
        files=files,
        ambiguous={"damaged": ["-o damaged=unknown"]},
    )
