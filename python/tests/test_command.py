"""Programs that are run by `python -m gristmill`, which is what `gristmill run` does."""

import subprocess
import sys
from pathlib import Path

import pytest

import gristmill as gm

pytestmark = pytest.mark.parametrize("engine", ["machine"], indirect=True)

JOB = """
import sys
import gristmill as gm
import helper
assert __name__ == "__main__"
with gm.configure() as settings:
    print(settings.workers, settings.on_error, sys.argv)
print(gm.range(3).map(helper.inverse).collect())
"""


def run(*arguments: str) -> tuple[int, str, str]:
    done = subprocess.run([sys.executable, "-m", "gristmill", *arguments], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def job(tmp_path: Path) -> str:
    (tmp_path / "helper.py").write_text("def inverse(n):\n    return 6 // n\n")
    (tmp_path / "job.py").write_text(JOB)
    return str(tmp_path / "job.py")


def test_a_program_gets_its_settings_and_arguments(job: str) -> None:
    status, printed, said = run("--workers", "3", "--on-error=skip", job, "--workers", "words.txt")
    assert (status, said) == (0, "")
    assert printed == f"3 skip ['{job}', '--workers', 'words.txt']\n[6, 3]\n"


def test_an_error_of_a_job_is_shown_without_the_lines_of_the_package(job: str) -> None:
    status, _, said = run(job)
    assert status == 1
    assert said.startswith("Traceback (most recent call last):\n") and "helper.py" in said
    assert "JobError: ZeroDivisionError: integer division or modulo by zero\n  in map inverse, on 0" in said
    assert "site-packages" not in said and "engines" not in said and "runpy" not in said


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        ([], "which program?"),
        (["--workers"], "--workers needs a value"),
        (["--workers", "two", "job.py"], "workers='two': give a whole number from 1 to 1024"),
        (["--workres", "2", "job.py"], "there is no setting 'workres'"),
        (["no such.py"], "there is no file no such.py"),
    ],
)
def test_what_makes_no_sense_is_said(arguments: list[str], complaint: str) -> None:
    status, _, said = run(*arguments)
    assert status == 2 and complaint in said and "Traceback" not in said


def test_its_version_and_its_help_are_printed() -> None:
    """`--version` was taken for a setting without a value."""
    assert run("--version") == (0, f"gristmill {gm.__version__}\n", "")
    status, printed, said = run("--help")
    assert status == 0 and printed.startswith("usage: gristmill run") and said == ""
