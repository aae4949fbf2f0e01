"""Builds wheels: maturin builds the package, and cargo the command `gristmill`, which the wheel carries too.

Settings (`pip wheel . -C NAME=VALUE`):
    profile     cargo's profile; by default `release`
    command     a command that has been built already
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import maturin
from maturin import get_requires_for_build_wheel

__all__ = ["build_editable", "build_sdist", "build_wheel", "get_requires_for_build_wheel"]

#: What maturin puts into the wheel besides the package; pyproject.toml names it too.
DATA = Path("target/wheel-data")
get_requires_for_build_editable = get_requires_for_build_wheel
Settings = Mapping[str, Any] | None


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    name: str = maturin.build_wheel(wheel_directory, _prepared(config_settings), metadata_directory)
    return name


def build_editable(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    name: str = maturin.build_editable(wheel_directory, _prepared(config_settings), metadata_directory)
    return name


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    raise RuntimeError("there is no source archive: install gristmill from a clone, or build a wheel")


def _prepared(config_settings: Settings) -> dict[str, Any]:
    """The settings for maturin. The command lies where maturin looks for the scripts of a wheel."""
    settings = dict(config_settings or {})
    profile = settings.get("profile", "release")
    _put_command(Path(settings["command"]) if "command" in settings else _command(profile))
    return {"maturin.build-args": ["--profile", profile]}


def _command(profile: str) -> Path:
    subprocess.run(["cargo", "build", "--locked", "--profile", profile, "--package", "gristmill-cli"], check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", "target")) / ("debug" if profile == "dev" else profile) / "gristmill"


def _put_command(built: Path) -> None:
    """Copies the command to the scripts of the wheel; without what only debuggers need, if that can be left out."""
    command = DATA / "scripts" / "gristmill"
    command.parent.mkdir(parents=True, exist_ok=True)
    if shutil.which("strip"):
        subprocess.run(["strip", "--strip-debug", "-o", command, built], check=True)
    else:
        shutil.copy2(built, command)
