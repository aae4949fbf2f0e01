"""The timeline of a job."""

import html.parser
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

import gristmill as gm
from gristmill.results import Result


class Page(html.parser.HTMLParser):
    """The tags of a page, and what of it points elsewhere."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.classes: list[str] = []
        self.foreign: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.foreign += [f"{name}={value}" for name, value in attrs if name in ("src", "href", "srcset", "data")]
        self.foreign += [tag] if tag in ("script", "link", "iframe", "img") else []
        self.classes += [value or "" for name, value in attrs if name == "class"]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.classes += [value or "" for name, value in attrs if name == "class"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check(page: str) -> Page:
    read = Page(page)
    assert not read.open and not read.foreign and "@import" not in page and "http" not in page
    return read


def made(path: Path) -> Result[tuple[int, int]]:
    """A job of two stages, in the first of which a worker dies once."""

    def fatal(n: int) -> tuple[int, int]:
        if n == 700 and not path.exists():
            path.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return n % 10, n

    with gm.configure(workers=2):
        return gm.range(1000).map(fatal).reduce_by_key(gm.sum).sort_by_key().run()


@pytest.mark.parametrize("engine", ["machine"], indirect=True)
def test_a_timeline_has_the_workers_of_every_stage_and_their_deaths(tmp_path: Path) -> None:
    result = made(tmp_path / "died")
    assert len(result) == 10 and repr(result.timeline()).startswith("<Timeline: 2 stages")
    page = check(result.timeline().page())
    first, second = (stage["workers"] for stage in result.stats["stages"])
    assert 3 <= page.classes.count("gm-bars") <= first + second, "workers that were never started have no lane"
    assert page.classes.count("gm-death") == 1 and page.classes.count("gm-timeline") == 2
    assert "signal 9" in result.timeline().page()
    # The same in a notebook, without the frame of a page and its line of introduction.
    shown = result.timeline()._repr_html_()
    assert ["soft", *check(shown).classes] == page.classes and "<body" not in shown


@pytest.mark.parametrize("engine", ["machine"], indirect=True)
def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    result = gm.range(10).run()
    page = tmp_path / "run.html"
    page.write_text("before")
    result.timeline().write(page)
    assert page.read_text() == result.timeline().page() and os.listdir(tmp_path) == ["run.html"]
    with pytest.raises(OSError, match="missing"):
        result.timeline().write(tmp_path / "missing" / "run.html")


@pytest.mark.parametrize("engine", ["local"], indirect=True)
def test_a_job_without_workers_says_that_it_has_no_timeline(tmp_path: Path) -> None:
    with pytest.raises(gm.PlanError, match='the engine "local" has no timeline'):
        gm.range(3).run().timeline()
