"""Every way to run a model.

prediction    the only inference loop: ``predict`` and ``evaluate``
explanation   heat maps, and which categories moved a score
export        ONNX and torch.export, compared with torch before they are written
onnx          an exported model at work, without torch
hub           the model folder in the Hugging Face layout, to and from the hub
"""
