"""Builds wheels (maturin the package, cargo the command, javac the shuffle for Spark) and the source archive.

Settings (`pip wheel . -C NAME=VALUE`):
    profile     cargo's profile; by default `release`
    command     a command that has been built already
    libc        the oldest version of the C library on which the package shall run, such as `2.28`; pip fetches zig, which links
                with it. By default the version that is here
    spark       the Sparks for which the wheel has a jar: folders of Spark or of an installed pyspark, with `:` between them, or
                `pypi`, which fetches one for each jar there is (400 MB each, needs pip); by default SPARK_HOME, else none
"""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

if sys.version_info < (3, 10):  # noqa: UP036 # pip comes here before it reads which versions there are
    sys.exit("gristmill needs Python 3.10 or later, and this is " + sys.version.split()[0])

import maturin

__all__ = ["build_editable", "build_sdist", "build_wheel", "get_requires_for_build_wheel", "prepare_metadata_for_build_wheel"]

#: The files that maturin puts into the wheel besides the package; pyproject.toml names the folder too.
DATA = Path("target/wheel-data")
#: A version of Spark for each jar there is.
SPARKS = ["4.0.5", "4.1.4", "4.3.0"]
Settings = Mapping[str, Any] | None


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    # A build sees only what it names, and not the pip that runs it.
    settings = config_settings or {}
    needed = [*(["pip"] if settings.get("spark") == "pypi" else []), *(["ziglang"] if "libc" in settings else [])]
    return [*maturin.get_requires_for_build_wheel(config_settings), *needed]


get_requires_for_build_editable = get_requires_for_build_wheel


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    settings = _prepared(config_settings)
    libc = (config_settings or {}).get("libc")
    settings["maturin.build-args"] += ["--zig", *_manylinux(libc)] if libc else _compatibility(DATA / "scripts" / "gristmill")
    name: str = maturin.build_wheel(wheel_directory, settings, metadata_directory)
    return name


def build_editable(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    name: str = maturin.build_editable(wheel_directory, _prepared(config_settings), metadata_directory)
    return name


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    _need_rust()
    DATA.mkdir(parents=True, exist_ok=True)
    name: str = maturin.prepare_metadata_for_build_wheel(metadata_directory)
    return name


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Packs all files but the results of benchmarks. The same commit gives the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        info = Path(folder, prepare_metadata_for_build_wheel(folder), "METADATA").read_bytes()
    name = info.decode().partition("\nName: ")[2].partition("\n")[0]
    version = info.decode().partition("\nVersion: ")[2].partition("\n")[0]
    top = f"{name}-{version}"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for file in _sources():
            _add(archive, f"{top}/{file}", file.read_bytes(), file.stat().st_mode)
        _add(archive, f"{top}/PKG-INFO", info, 0o644)
    Path(sdist_directory, f"{top}.tar.gz").write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    return f"{top}.tar.gz"


def _sources() -> list[Path]:
    """The files of a clone, or of an unpacked source archive, in a fixed order."""
    if Path(".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z"], check=True, stdout=subprocess.PIPE, text=True).stdout
        files = [Path(name) for name in listed.split("\0") if name]
    else:
        files = [path for path in Path().rglob("*") if path.is_file() and path.parts[0] != "target" and path.name != "PKG-INFO"]
    return sorted(path for path in files if path.parts[:2] != ("bench", "runs") and path.exists())


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o755 if mode & 0o100 else 0o644
    archive.addfile(entry, io.BytesIO(content))


def _need_rust() -> None:
    """Exits with a message if Rust is missing or too old; a traceback would hide the reason."""
    found = subprocess.run(["cargo", "--version"], stdout=subprocess.PIPE, text=True).stdout if shutil.which("cargo") else ""
    version = re.match(r"cargo (\d+)\.(\d+)", found)
    if version is None or (int(version[1]), int(version[2])) < (1, 90):
        here = f"and this is {found.strip()}" if found else "which is not here"
        sys.exit(f"Building gristmill needs Rust 1.90 or later, {here}. https://rustup.rs installs it for one user; a wheel needs none.")


def _prepared(config_settings: Settings) -> dict[str, Any]:
    """The settings for maturin. The command lies where maturin looks for the scripts of a wheel."""
    _need_rust()
    settings = dict(config_settings or {})
    profile = settings.get("profile", "release")
    _put_command(Path(settings["command"]) if "command" in settings else _command(profile))
    _put_jars(settings.get("spark", os.environ.get("SPARK_HOME", "")))
    return {"maturin.build-args": ["--profile", profile]}


def _compatibility(command: Path) -> list[str]:
    """The option that names the oldest C library on which the wheel runs (PEP 600).

    The command uses more of it than the module does, of which maturin checks that this is true.
    """
    needed = [int(minor) for minor in re.findall(rb"\0GLIBC_2\.(\d+)", command.read_bytes())]
    return _manylinux(f"2.{max(needed)}") if needed else []


def _manylinux(libc: str) -> list[str]:
    return ["--compatibility", "manylinux_" + libc.replace(".", "_")]


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


def _put_jars(spark: str) -> None:
    """Builds a jar for each Spark into the modules of the wheel. gristmill/spark.py finds it by its name."""
    jars = DATA / "platlib" / "gristmill" / "jars"
    shutil.rmtree(jars, ignore_errors=True)
    jars.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as fetched:
        folders = _fetched(Path(fetched)) if spark == "pypi" else [folder for folder in spark.split(":") if folder]
        _build_jars(folders, jars)


def _fetched(to: Path) -> list[str]:
    """Spark of each version for which there is a jar: its folders, from packages of pyspark."""
    folders = []
    for version in SPARKS:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(to / version), f"pyspark=={version}"]
        subprocess.run(command, check=True)
        folders.append(str(to / version / "pyspark"))
    return folders


def _build_jars(folders: list[str], jars: Path) -> None:
    for folder in folders:
        said = subprocess.run(["bash", "spark/jar.sh", folder], check=True, stdout=subprocess.PIPE, text=True).stdout
        shutil.copy2(said.rpartition(" is for Spark ")[0], jars)
