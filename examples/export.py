"""Write the model of ``train.py`` as ONNX. Expect a file of a megabyte, and logits like torch's to 0.0001.

Needs ``pip install 'sarb[export]'``; ``predict_onnx.py`` uses the file.
"""

import sarb

model = sarb.load_model("runs/example")
done = sarb.export(
    model, "runs/example/model.onnx", progress=False
)  # nothing is written if it differs from torch
print(done)
