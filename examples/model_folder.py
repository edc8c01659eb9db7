"""Hand on the model of ``train.py`` as a folder in the Hugging Face layout. Expect four files and equal
predictions.
"""

import numpy as np
from PIL import Image

import sarb

model = sarb.load_model("runs/example")
folder = model.save_pretrained("runs/example-model", license="cc-by-4.0")  # the licence is yours to state
print(sorted(file.name for file in folder.iterdir()))

again = sarb.Model.from_pretrained("runs/example-model")
picture = [Image.new("RGB", (200, 150), "skyblue")]
print(
    "same logits:", np.array_equal(sarb.predict(model, picture).logits, sarb.predict(again, picture).logits)
)

# with a login at the hub, and pip install "sarb[hub]":
# model.push_to_hub("owner/name", private=True)
# model = sarb.load_model("owner/name")
