"""Jobs in the cells of a notebook."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client import BlockingKernelClient, KernelManager
from jupyter_client.manager import start_new_kernel

pytestmark = pytest.mark.parametrize("engine", ["machine"], indirect=True)

SLOW = """
import time
import gristmill as gm
def slowly(n):
    time.sleep(0.002)
    return n % 10, n
job = gm.range(1000).map(slowly).reduce_by_key(gm.sum)
"""


@pytest.fixture(scope="module")
def kernel() -> Iterator[tuple[KernelManager, BlockingKernelClient]]:
    manager, client = start_new_kernel()
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def outputs(client: BlockingKernelClient, code: str) -> list[dict[str, Any]]:
    """Returns what a cell shows, changes of it included."""
    messages: list[dict[str, Any]] = []
    client.execute_interactive(code, output_hook=messages.append, timeout=60)
    return [message["content"] for message in messages]


def test_a_cell_shows_how_far_its_job_is_and_what_came_of_it(kernel: tuple[KernelManager, BlockingKernelClient]) -> None:
    shown = outputs(kernel[1], SLOW + "with gm.configure(workers=2): result = job.run()\nresult")
    pages = [content["data"]["text/html"] for content in shown if "text/html" in content.get("data", {})]
    *bars, end, result = pages
    assert bars and all("<progress" in bar and "of 1,000 records, " in bar for bar in bars)
    assert "done in" in end
    assert "<td>&#x27;" not in result and "<td>49500</td>" in result and "<summary>statistics</summary>" in result
    assert not [content for content in shown if content.get("name") == "stderr"]


def test_an_interrupt_ends_the_job_and_not_the_kernel(kernel: tuple[KernelManager, BlockingKernelClient]) -> None:
    manager, client = kernel
    client.execute(SLOW + "print('begun', flush=True)\ngm.range(10**6).map(slowly).collect()")
    while client.get_iopub_msg(timeout=60)["content"].get("text") != "begun\n":
        pass
    time.sleep(0.5)
    manager.interrupt_kernel()
    reply = client.get_shell_msg(timeout=60)
    assert reply["content"]["ename"] == "KeyboardInterrupt"
    shown = outputs(client, "job.count()")
    assert any("10" in content.get("data", {}).get("text/plain", "") for content in shown)


def test_the_example_shows_plan_progress_result_and_timeline(kernel: tuple[KernelManager, BlockingKernelClient]) -> None:
    notebook = json.loads((Path(__file__).parent.parent / "examples" / "notebook.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] for cell in cells), "it is kept without outputs"
    shown = [outputs(kernel[1], "".join(cell["source"])) for cell in cells]
    assert not [content for content in sum(shown, []) if "ename" in content or "name" in content]
    pages = ["".join(content.get("data", {}).get("text/html", "") for content in contents) for contents in shown]
    expected = ["", "reduce by gm.sum", "<td>71071</td>", "class='gm-bars'", "three"]
    assert len(pages) == len(expected) and all(text in page for text, page in zip(expected, pages)), pages
    assert "<progress" in pages[2] and "done in" in pages[2]
