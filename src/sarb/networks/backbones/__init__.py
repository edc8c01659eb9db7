"""Image to map (B, D, H, W).

base          named stages, frozen or trained; weight files
efficientnet  EfficientNet-Lite0 to -Lite2
resnet        ResNet-18 to ResNet-101
concepts      the classifier a backbone was pretrained with
given         maps that another network has computed
tiny          three convolutions, for tests
fold          folds batch norms into convolutions, for inference
"""
