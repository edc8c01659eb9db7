"""Packages of an extra: imported when they are needed; what goes wrong is one line."""

from __future__ import annotations

import importlib
from typing import Any

from sarb.errors import ConfigError
from sarb.networks.backbones.weight_files import one_line


def package(module: str, title: str) -> Any:
    """Import the package of the extra of the same name.

    Args:
        module: its name.
        title: what needs it, for the message.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise ConfigError([f"{title}: {module} needs {error.name}, which is missing"]) from error
        raise ConfigError([f"{title} needs the package {module}: pip install 'sarb[{module}]'"]) from error
    except Exception as error:  # torchvision of another build than torch fails in a way of its own
        raise ConfigError(
            [
                f"{title}: the package {module} is installed, but cannot be imported ({one_line(error)}). Are "
                "torch and torchvision of the same build?"
            ]
        ) from error
