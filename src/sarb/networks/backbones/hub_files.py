"""Files of the Hugging Face hub: from its cache on this machine if they are there, else fetched once.

With ``HF_HUB_OFFLINE=1`` nothing is fetched. A file in the cache is used as it is: no run asks the hub for a newer one.
"""

from __future__ import annotations

from pathlib import Path

from sarb.errors import ConfigError
from sarb.networks.backbones.weight_files import one_line
from sarb.runs.lookup import hub_library


def weight_names() -> list[str]:
    """What weight files are called, safetensors first; an index lists the parts of a large model."""
    names = hub_library().constants
    return [
        names.SAFETENSORS_SINGLE_FILE,
        names.SAFETENSORS_INDEX_FILE,
        names.PYTORCH_WEIGHTS_NAME,
        f"{names.PYTORCH_WEIGHTS_NAME}.index.json",
    ]


def hub_file(repo: str, names: list[str], revision: str | None = None, instead: str = "") -> Path | None:
    """Return the first of these files that a repository has; None if the hub says that it has none of them.

    Args:
        repo: ``owner/name``.
        names: files, the preferred one first.
        revision: branch, tag or commit; None for the main one.
        instead: what else the user can do, for the message.

    Raises:
        ConfigError: none is on this machine and the hub cannot be reached, or there is no such repository. One
            line, with the command that fetches the files.
    """
    library = hub_library()
    unknown = []
    for name in names:
        found = library.try_to_load_from_cache(repo, name, revision=revision)
        if isinstance(found, str):
            return Path(found)
        if found is None:  # the cache also remembers which files the hub did not have
            unknown.append(name)
    library.utils.logging.set_verbosity_error()  # it reports each of its retries; the last failure is enough
    for name in unknown:
        try:
            return Path(library.hf_hub_download(repo, name, revision=revision))
        except Exception as error:  # the library and the network have dozens of classes
            here = isinstance(error, library.errors.LocalEntryNotFoundError)  # a kind of the next one
            if isinstance(error, library.errors.EntryNotFoundError) and not here:
                continue
            at = f" --revision {revision}" if revision else ""
            reason = "no answer from the hub, or HF_HUB_OFFLINE is set" if here else one_line(error)[:150]
            raise ConfigError(
                [
                    f"{repo}: {name} is not on this machine and cannot be fetched ({reason}). Run "
                    f"once where there is internet: hf download {repo}{at} (and copy ~/.cache/huggingface here)"
                    + (f"; or {instead}" if instead else "")
                ]
            ) from error
    return None
