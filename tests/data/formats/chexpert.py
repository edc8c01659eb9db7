"""CheXpert-v1.0-small: train.csv and valid.csv with all columns; 1.0, 0.0, -1.0 and blank cells."""

from pathlib import Path

from tests.data.fixtures import write_image
from tests.data.formats import Example

HEADER = (
    "Path,Sex,Age,Frontal/Lateral,AP/PA,No Finding,Enlarged Cardiomediastinum,Cardiomegaly,Lung Opacity,"
    "Lung Lesion,Edema,Consolidation,Pneumonia,Atelectasis,Pneumothorax,Pleural Effusion,Pleural Other,"
    "Fracture,Support Devices\n"
)
NAME = "CheXpert-v1.0-small"
TRAIN = f"""{HEADER}\
{NAME}/train/patient00001/study1/view1_frontal.jpg,Female,68,Frontal,AP,1.0,,,,,,,,,0.0,,,,1.0
{NAME}/train/patient00002/study2/view1_frontal.jpg,Female,87,Frontal,AP,,,-1.0,1.0,,-1.0,-1.0,,-1.0,\
,-1.0,,1.0,
{NAME}/train/patient00002/study1/view2_lateral.jpg,Female,83,Lateral,,,,,1.0,,,-1.0,,,0.0,,,1.0,
"""
VALID = f"""{HEADER}\
{NAME}/valid/patient64541/study1/view1_frontal.jpg,Male,73,Frontal,AP,0.0,1.0,1.0,1.0{10 * ",0.0"}
"""
EXPECTED = {
    "train": {
        f"{NAME}/train/patient00001/study1/view1_frontal.jpg": [1, 0, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 1],
        f"{NAME}/train/patient00002/study2/view1_frontal.jpg": [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0],
        f"{NAME}/train/patient00002/study1/view2_lateral.jpg": [0, 0, 0, 1, 0, 0, 0, 0, 0, -1, 0, 0, 1, 0],
    },
    "test": {
        f"{NAME}/valid/patient64541/study1/view1_frontal.jpg": [-1, 1, 1, 1] + 10 * [-1],
    },
}


def example(root: Path) -> Example:
    for number, name in enumerate(name for images in EXPECTED.values() for name in images):
        write_image(root / name, number, (8, 8))
    files = [root / NAME / "train.csv", root / NAME / "valid.csv"]
    for path, text in zip(files, (TRAIN, VALID), strict=True):
        path.write_text(text)
    categories = HEADER.strip().split(",")[5:]
    return Example(source=f"chexpert:{root / NAME}", categories=categories, splits=EXPECTED, files=files)
