"""The jar is that of the installed PySpark, or one sentence says how to get it."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import gristmill as gm


@pytest.mark.parametrize(
    ("version", "jars", "answer"),
    [
        ("4.0.3", ["4.0", "4.1"], "gristmill-spark-4.0_2.13-0.3.0.jar"),
        ("4.2.0.dev1", ["4.0", "4.1"], "gristmill-spark-4.1_2.13-0.3.0.jar"),
        ("4.3.0", ["4.0", "4.1"], "has a jar only for 4.0 and 4.1 of Spark, and the installed PySpark is 4.3.0: build one with"),
        ("4.1.1", [], "has a jar for no version of Spark"),
        ("3.5.6", ["4.0"], "is for Spark 4.0 to 4.3, and the installed PySpark is 3.5.6"),
        ("5.0.0", ["4.0"], "is for Spark 4.0 to 4.3"),
    ],
)
def test_the_jar_is_for_the_installed_version(version: str, jars: list[str], answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jars").mkdir()
    for line in jars:
        (tmp_path / "jars" / f"gristmill-spark-{line}_2.13-0.3.0.jar").touch()
    monkeypatch.setattr(gm.spark, "__file__", str(tmp_path / "spark.py"))
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(__version__=version))  # type: ignore[arg-type]
    if answer.endswith(".jar"):
        assert gm.spark.config()["spark.jars"] == str(tmp_path / "jars" / answer)
    else:
        with pytest.raises(gm.PlanError, match=answer):
            gm.spark.config()


def test_without_pyspark_the_jar_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)  # type: ignore[arg-type]
    with pytest.raises(gm.PlanError, match="needs PySpark.*pip install 'gristmill\\[spark\\]'"):
        gm.spark.config()
    assert gm.spark.config(jar="a.jar")["spark.jars"] == "a.jar"
    monkeypatch.delitem(sys.modules, "gristmill.engines.spark.job", raising=False)
    with gm.configure(engine="spark"), pytest.raises(gm.PlanError, match="pip install 'gristmill\\[spark\\]'"):
        gm.range(1).collect()
