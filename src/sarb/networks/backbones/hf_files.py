"""The files of a model of transformers: a folder, or a repository of the hub, from its cache or fetched once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from sarb.errors import ConfigError
from sarb.files import read_json
from sarb.networks.backbones.hub_files import hub_file, weight_names
from sarb.networks.backbones.weight_files import read_weights
from sarb.runs.lookup import hub_library

#: owner/name or name, with an optional @revision
REPOSITORY = re.compile(r"(?P<id>[\w.-]+(/[\w.-]+)?)(@(?P<revision>[\w./-]+))?")
#: how images are prepared; transformers 5 writes the second one for models of images and text, with a part for each
PROCESSORS = ("preprocessor_config.json", "processor_config.json")


@dataclass(frozen=True)
class ModelFiles:
    """Where the files of ``hf:NAME`` are.

    Attributes:
        name: a folder, or ``owner/name[@revision]``.
    """

    name: str

    @property
    def folder(self) -> Path | None:
        """The folder, if the name is one here."""
        path = Path(self.name).expanduser()
        return path if path.is_dir() else None

    def find(self, names: list[str]) -> Path | None:
        """The first of these files that is there; None if there is none."""
        if self.folder is not None:
            return next((self.folder / name for name in names if (self.folder / name).is_file()), None)
        match = REPOSITORY.fullmatch(self.name)
        if match is None or self.name.startswith("."):
            raise ConfigError(
                [f"hf:{self.name}: no such folder, and not the name of a repository (owner/name) either"]
            )
        return hub_file(match["id"], names, match["revision"], "give a folder: hf:FOLDER")

    def config(self) -> dict[str, Any]:
        """The content of the model's configuration file."""
        name = hub_library().constants.CONFIG_NAME
        found = self.find([name])
        if found is None:
            raise ConfigError([f"hf:{self.name}: there is no {name}, so it is no model of transformers"])
        content = read_json(found)
        if not isinstance(content, dict) or not isinstance(content.get("model_type"), str):
            raise ConfigError([f"{found}: no 'model_type', so it is no configuration of transformers"])
        return content

    def processor(self) -> Mapping[str, Any]:
        """How images are prepared; empty if nothing says it."""
        found = self.find([*PROCESSORS])
        content = read_json(found) if found is not None else {}
        if found is not None and found.name == PROCESSORS[1] and isinstance(content, dict):
            content = content.get("image_processor")
        return content if isinstance(content, dict) else {}

    def weights(self) -> dict[str, Tensor]:
        """All tensors, by name."""
        names = weight_names()
        found = self.find(names)
        if found is None:
            raise ConfigError([f"hf:{self.name}: there is no weight file ({', '.join(names)})"])
        if found.suffix != ".json":
            return read_weights(found)
        tensors: dict[str, Tensor] = {}
        for part in sorted(set(read_json(found).get("weight_map", {}).values())):
            file = self.find([Path(str(part)).name])
            if file is None:
                raise ConfigError([f"{found}: lists {part}, which is missing"])
            tensors |= read_weights(file)
        return tensors
