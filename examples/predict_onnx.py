"""Label a picture with the file of ``export.py``. Expect three labels, and that torch was never loaded."""

import sys

from PIL import Image

from sarb.inference.onnx import OnnxModel

model = OnnxModel("runs/example/model.onnx")
print(model)
scores = model.predict([Image.new("RGB", (200, 150), "skyblue")])
print(", ".join(f"{name} {probability:.2f}" for name, probability in scores.top(3)[0]))
print("torch loaded:", "torch" in sys.modules)
