"""Label pictures with the model of ``train.py``: files, Pillow images or arrays."""

from pathlib import Path

from PIL import Image

import sarb

model = sarb.load_model("runs/example")
folder = Path("runs/example-predict")
folder.mkdir(parents=True, exist_ok=True)
sky, broken = folder / "sky.png", folder / "broken.jpg"
Image.new("RGB", (200, 150), "skyblue").save(sky)

scores = sarb.predict(model, [sky, Image.new("RGB", (64, 64), "darkgreen")])
for path, labels in zip(scores.paths, scores.top(3), strict=True):
    print(path, ", ".join(f"{name} {probability:.2f}" for name, probability in labels))
scores.to_csv(folder / "predictions.csv")

# a damaged file among many need not stop the rest
broken.write_text("not a picture", encoding="utf-8")
skipped: list[tuple[str, str]] = []
scores = sarb.predict(model, [sky, broken], skipped=skipped)
print(len(scores), "labelled, skipped:", skipped)
