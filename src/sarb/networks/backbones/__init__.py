"""Image to map (B, D, H, W).

stages        named stages, frozen or trained: what every backbone is
base          makes one by name; weight files
efficientnet  EfficientNet-Lite0 to -Lite2
resnet        ResNet-18 to ResNet-101
scales        one of them at several resolutions
concepts      the classifier a backbone was pretrained with
given         maps that another network has computed
tiny          three convolutions, for tests
fold          folds batch norms into convolutions, for inference
"""
