"""Category names as vectors of a text encoder: that of a CLIP or SigLIP model, instead of word vectors.

A name becomes the vector of "a photo of a NAME.", scaled so that its entries are as large as those of GloVe (a standard
deviation of about 0.4), for which the networks and their learning rates are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sarb.data.words import COMPOUNDS
from sarb.errors import ConfigError, named
from sarb.networks.backbones.extras import package
from sarb.networks.backbones.hf_files import ModelFiles
from sarb.networks.backbones.weight_files import one_line
from sarb.runs.lookup import hub_errors, hub_library

#: ``--words hf:NAME``, and the start of such a backbone's name
PREFIX = "hf:"
#: root of the mean squared entry, as in GloVe
SIZE = 0.4
#: model types with a text encoder
TYPES = ("clip", "siglip")
#: files of a tokenizer; one of the first three is needed
TOKENIZER = (
    *("tokenizer.json", "vocab.json", "spiece.model"),
    *("merges.txt", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
)


def text_source(backbone: str, options: Mapping[str, Any]) -> str | None:
    """Return ``hf:NAME`` if this backbone came with a text encoder and its own weights; None otherwise."""
    own_files = options.get("weights", "default") == "default" and not options.get("architecture")
    if not backbone.startswith(PREFIX) or not own_files:
        return None
    stored = ModelFiles(backbone.removeprefix(PREFIX)).config()
    return backbone if stored["model_type"] in TYPES and "text_config" in stored else None


def text_vectors(source: str, categories: Sequence[str]) -> NDArray[np.float32]:
    """Return the vectors (C, W) of category names.

    Args:
        source: ``hf:NAME`` of a CLIP or SigLIP model, a folder or a repository.
        categories: C names.

    Raises:
        ConfigError: the model has no text encoder, or its files are not here.
    """
    library = package("transformers", f"{named('words')} {source}")
    files = ModelFiles(source.removeprefix(PREFIX))
    stored = files.config()
    if stored["model_type"] not in TYPES or "text_config" not in stored:
        raise ConfigError([f"{named('words')} {source}: a {stored['model_type']} model has no text encoder"])
    folder = _tokenizer_folder(files, source)
    tensors = files.weights()
    try:
        return _encoded(library, stored, tensors, folder, [sentence(name) for name in categories])
    except Exception as error:  # what the package makes of broken files
        raise ConfigError([f"{named('words')} {source}: cannot be used ({one_line(error)})"]) from error


def sentence(category: str) -> str:
    """What the encoder reads for a category.

    >>> sentence("pottedplant")
    'a photo of a potted plant.'
    """
    name = " ".join(category.lower().replace("_", " ").split())
    return f"a photo of a {COMPOUNDS.get(name, name)}."


def _encoded(
    library: Any, stored: Mapping[str, Any], tensors: Mapping[str, Any], folder: Path, texts: list[str]
) -> NDArray[np.float32]:
    library.utils.logging.disable_progress_bar()
    library.utils.logging.set_verbosity_error()
    options = {key: value for key, value in stored.items() if key not in ("model_type", "auto_map")}
    config = library.AutoConfig.for_model(stored["model_type"], **options)
    kind = library.AutoModel._model_mapping[type(config)]
    model = kind.from_pretrained(None, config=config, state_dict=dict(tensors)).float().eval()
    tokenizer = library.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    length = int(config.text_config.max_position_embeddings)
    tokens = tokenizer(texts, padding="max_length", max_length=length, truncation=True, return_tensors="pt")
    siglip = stored["model_type"] == "siglip"  # it was trained without a mask
    mask = None if siglip else tokens.get("attention_mask")
    with torch.inference_mode():
        found = model.get_text_features(input_ids=tokens["input_ids"], attention_mask=mask).pooler_output
    scaled = torch.nn.functional.normalize(found, dim=1) * SIZE * found.shape[1] ** 0.5
    vectors: NDArray[np.float32] = scaled.numpy()
    return vectors


def _tokenizer_folder(files: ModelFiles, source: str) -> Path:
    """The folder with the files of the tokenizer."""
    folder, fetch = files.folder, ""
    if folder is None:
        name, _, revision = files.name.partition("@")
        at = f" --revision {revision}" if revision else ""
        fetch = f"; run once where there is internet: hf download {name}{at}"
        with hub_errors(f"{named('words')} {source}: its tokenizer is not here{fetch}"):
            folder = Path(
                hub_library().snapshot_download(
                    name, revision=revision or None, allow_patterns=list(TOKENIZER)
                )
            )
    if not any((folder / name).is_file() for name in TOKENIZER[:3]):
        raise ConfigError(
            [f"{named('words')} {source}: no tokenizer ({', '.join(TOKENIZER[:3])}) in {folder}{fetch}"]
        )
    return folder
