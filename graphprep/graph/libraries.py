"""Libraries that are not ours, imported when they are asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from graphprep.model.errors import UsageError

# What installs a library that is asked for.
_PACKAGES = {
    "scipy": "scipy",
    "networkx": "networkx",
    "pandas": "pandas",
    "torch": "torch torch-geometric",
    "torch_geometric": "torch torch-geometric",
    "dgl": "dgl",
    "graphlearn_torch": "graphlearn-torch",
}


def load_library(module: str) -> Any:
    """Import a library. Raises UsageError that says what to install, or why what is installed does not load."""
    name = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in _PACKAGES:
            raise _broken(name, error) from error
        raise UsageError(f"{error.name} is not installed", fix=f"pip install {_PACKAGES[error.name]}") from None
    except (ImportError, OSError) as error:
        raise _broken(name, error) from error


def _broken(name: str, error: Exception) -> UsageError:
    return UsageError(
        f"{name} is installed, but does not load: {type(error).__name__}: {error}",
        fix=f"reinstall {name} with all that it needs, in a build for the Python, torch and CUDA that are here",
    )
