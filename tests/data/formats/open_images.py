"""Open Images V7: three label files, a header of class descriptions, a shared class name, a machine row."""

from pathlib import Path

from tests.data.fixtures import write_image
from tests.data.formats import Example

CLASSES = """LabelName,DisplayName
/m/011k07,Tortoise
/m/0bt9lr,Dog
/m/01b7b,Bishop
/m/01yrx,Cat
/m/0c3w3,"Wheel, spoked"
/m/027k49j,Bishop
"""
LABELS = {
    "train": """ImageID,Source,LabelName,Confidence
000002b66c9c498e,verification,/m/0bt9lr,1
000002b66c9c498e,crowdsource-verification,/m/01yrx,0
000002b66c9c498e,machine,/m/01b7b,0.9
0a1b2c3d4e5f6071,verification,/m/01yrx,1
0a1b2c3d4e5f6071,verification,/m/027k49j,0
0a1b2c3d4e5f6071,verification,/m/01b7b,1
""",
    "val": """ImageID,Source,LabelName,Confidence
0001eeaf4aed83f9,verification,/m/0c3w3,1
0001eeaf4aed83f9,verification,/m/0bt9lr,0
""",
    "test": """ImageID,Source,LabelName,Confidence
000026e7ee790996,crowdsource-verification,/m/0bt9lr,0
000026e7ee790996,verification,/m/0bt9lr,0
000026e7ee790996,verification,/m/01yrx,1
""",
}
FOLDERS = {"train": "train", "val": "validation", "test": "test"}


def example(root: Path) -> Example:
    files = [root / "oidv7-class-descriptions.csv"]
    files[0].write_text(CLASSES)
    for word, text in LABELS.items():
        files.append(root / f"oidv7-{word}-annotations-human-imagelabels.csv")
        files[-1].write_text(text)
        for line in text.splitlines()[1:]:
            image = line.split(",")[0]
            write_image(root / FOLDERS[word] / f"{image}.jpg", int(image[:6], 16), (8, 8))
    return Example(
        source=f"open_images:{root}",
        categories=["Dog", "Bishop (/m/01b7b)", "Cat", "Wheel, spoked", "Bishop (/m/027k49j)"],
        splits={
            "train": {"000002b66c9c498e.jpg": [1, 0, -1, 0, 0], "0a1b2c3d4e5f6071.jpg": [0, 1, 1, 0, -1]},
            "valid": {"0001eeaf4aed83f9.jpg": [-1, 0, 0, 1, 0]},
            "test": {"000026e7ee790996.jpg": [-1, 0, 1, 0, 0]},
        },
        files=files,
    )
