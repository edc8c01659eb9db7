"""Image to map (B, D, H, W).

base          ordered, named stages; which are frozen; weight files
efficientnet  EfficientNet-Lite0
resnet        ResNet-18 to ResNet-101
concepts      the classifier a backbone was pretrained with
tiny          three convolutions, for tests
fold          batch norms folded into convolutions, for inference
"""
