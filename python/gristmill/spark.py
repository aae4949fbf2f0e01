"""Gristmill's shuffle for Apache Spark, also for programs of PySpark that use nothing else of this package.

>>> import gristmill as gm
>>> gm.spark.config(jar="gristmill-spark.jar")["spark.jars"]
'gristmill-spark.jar'
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .base.errors import PlanError

_MANAGER = "org.apache.spark.shuffle.gristmill.GristmillShuffleManager"
#: For each version of Spark, the oldest one with the same interfaces: a jar is for all of these.
_LINES = {"4.0": "4.0", "4.1": "4.1", "4.2": "4.1", "4.3": "4.3"}


def config(jar: str | Path | None = None) -> dict[str, str]:
    """The settings of Spark that switch on Gristmill's shuffle: for `SparkSession.builder.config(map=...)`.

    The package carries a jar for each version of Spark for which its builder had what it takes; the installed PySpark says which
    one is right. `jar` names another, such as one that `make spark-jar` built.

    >>> import gristmill as gm
    >>> gm.spark.config(jar="gristmill-spark.jar")
    {'spark.jars': 'gristmill-spark.jar', 'spark.shuffle.manager': 'org.apache.spark.shuffle.gristmill.GristmillShuffleManager'}
    """
    return {"spark.jars": str(jar or _jar()), "spark.shuffle.manager": _MANAGER}


def _jar() -> Path:
    """The jar for the PySpark that is installed."""
    try:
        from pyspark import __version__ as version
    except ImportError as error:
        raise PlanError("gm.spark.config() needs PySpark, whose version says which jar is right: pip install 'gristmill[spark]'") from error
    line = _LINES.get(".".join(version.split(".")[:2]))
    if line is None:
        raise PlanError(f"Gristmill's shuffle is for Spark {min(_LINES)} to {max(_LINES)}, and the installed PySpark is {version}")
    jars = dict(_jars())
    if line not in jars:
        there = f"only for {' and '.join(sorted(jars))}" if jars else "for no version"
        raise PlanError(
            f"this gristmill has a jar {there} of Spark, and the installed PySpark is {version}: build one with `make spark-jar` in a"
            " clone of Gristmill, and name it: gm.spark.config(jar=...)"
        )
    return jars[line]


def _jars() -> Iterator[tuple[str, Path]]:
    """The jars of this package, by the oldest version of Spark that they are for."""
    for path in (Path(__file__).parent / "jars").glob("*.jar"):
        if found := re.match(r"gristmill-spark-(\d+\.\d+)_", path.name):
            yield found[1], path
