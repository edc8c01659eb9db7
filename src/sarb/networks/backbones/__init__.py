"""Image to map (B, D, H, W).

stages        named stages, frozen or trained: what every backbone is
base          makes one by name; weight files
efficientnet  EfficientNet-Lite0 to -Lite2
resnet        ResNet-18 to ResNet-101
scales        one of them at several resolutions
concepts      the classifier a backbone was pretrained with
given         maps that another network has computed
tiny          three convolutions, for tests
foreign       a model of another package, as a backbone
timm_models   timm:NAME
timm_cut      its stages
hf_models     hf:NAME, a model of transformers
hf_cut        its stages
hf_files      its files
tokens        tokens of a vision transformer as a map
positions     their position embeddings for another grid
hub_files     files of the Hugging Face hub, here or fetched once
weight_files  reads weight files without running code
extras        imports a package of an extra, or says how to get it
fold          folds batch norms into convolutions, for inference
"""
