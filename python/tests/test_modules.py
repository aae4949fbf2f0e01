"""Workers of programs with threads ran modules as they had been before they were reloaded, patched or set."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.parametrize("engine", ["machine"], indirect=True)

RULES = """
import abc, collections, enum, functools, threading, time
from dataclasses import dataclass

FACTOR = 2
TABLE = {"a": 1}
LIMITS = [1, [2]]
MISSING = object()
LOCK = threading.Lock()
pick = lambda n: n + 1
connection = None

@functools.lru_cache(maxsize=4)
def cached(n):
    return n * 11

class Wrong(Exception):
    pass

@dataclass
class Point:
    x: int
    scale = 10
    def scaled(self):
        return self.x * self.scale

class Base:
    def name(self):
        return "base"

class Derived(Base):
    def name(self):
        return "derived of " + super().name()

class Shape(abc.ABC):
    def sides(self):
        return 3

class Proxy:
    @property
    def __class__(self):
        raise RuntimeError("outside of a request")
    def __getattr__(self, name):
        raise RuntimeError("outside of a request")

PROXY = Proxy()

class Color(enum.Enum):
    RED = 1

def helper(n):
    return n

def f(n, given=MISSING):
    with LOCK:
        return helper(n) * FACTOR if given is MISSING else None

def table(n):
    return TABLE.get("a"), sorted(TABLE), LIMITS

def point(n):
    return Point(n)

def fails(n):
    raise Wrong(n)

def connected(n):
    global connection
    if connection is None:
        connection = "made in the worker"
    return str(connection)[:8]

def picked(n):
    return pick(n)

def by_name(n):
    return globals()["FACTOR"]

def clock(n):
    return time.time()

def counted(n):
    return collections.Counter("aab")["a"]
"""

OTHER = """
import rules
from rules import helper
import pkg.sub

def outer(n):
    return helper(n), rules.FACTOR, pkg.sub.X

def inside(n):
    import late
    from pkg import sub
    return late.VALUE, sub.X
"""

START = """
import importlib, sys, threading, time
from pathlib import Path
import gristmill as gm
import rules, other, late, pkg.sub

if sys.argv[1] == "threads":
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()

def seen(*functions):
    # The first job imports the modules, the second one finds them imported.
    return [gm.range(1).map(function).collect() for function in functions for _ in range(2)]

def edited(name, old, new):
    path = Path(sys.modules[name].__file__)
    path.write_text(path.read_text().replace(old, new))

print("before", seen(rules.f, other.outer, other.inside, rules.table, rules.picked))
"""

#: Deeds of a user, and a statement for each. Each ends with the same jobs, which print what workers see.
CHANGES = {
    "a variable is set": "rules.FACTOR = 100",
    "a function is replaced": "rules.helper = lambda n: n + 7",
    "a function is replaced where it was imported": "other.helper = lambda n: n + 7",
    "a variable of a submodule is set": "pkg.sub.X = 'set'",
    "a variable of a module that a function imports is set": "late.VALUE = 'set'",
    "a dictionary is changed in place": "rules.TABLE['a'] = 5; rules.TABLE['b'] = 6; rules.LIMITS[1].append(3)",
    "a function is a lambda": "rules.pick = lambda n: -n",
    "an attribute of a class is set": "rules.Point.scale = 99",
    "a method is replaced": "rules.Base.name = lambda self: 'replaced'",
    "a module is reloaded": (
        "edited('rules', 'FACTOR = 2', 'FACTOR = 1234'); edited('rules', 'return n\\n', 'return n + 5\\n'); importlib.reload(rules)"
    ),
    "an abstract class is patched": "rules.Shape.sides = lambda self: 4",
    "a cached function is replaced": "import functools; rules.pick = functools.lru_cache(lambda n: n + 9)",
    "a cached function is edited": "edited('rules', 'n * 11', 'n * 11 + 1'); importlib.reload(rules)",
    "the program has a cached function": "import functools; own = functools.cache(lambda n: n + 9); rules.pick = lambda n: own(n)",
    "a function is mocked": "import unittest.mock; unittest.mock.patch('rules.helper', lambda n: n + 4).start()",
    "a proxy is there that may not be looked at": "rules.PROXY = rules.Proxy(); rules.table = lambda n: rules.PROXY is not None",
    "a file is edited and not reloaded": "edited('rules', 'FACTOR = 2', 'FACTOR = 1234')",
    "a function of the standard library is patched": "time.time = lambda: 12",
    "a class of the standard library is patched": "import collections; collections.Counter = lambda text: {'a': 'patched'}",
    "a variable is deleted": "del rules.TABLE; rules.table = lambda n: hasattr(rules, 'TABLE')",
    "a variable is added": "rules.ADDED = 3; rules.table = lambda n: rules.ADDED",
    "a class is added": "exec('class New:\\n    x = 1', vars(rules)); rules.table = lambda n: rules.New().x",
    "a variable is what cannot be pickled, and is made when it is needed": "rules.connection = None",
}

END = """
SEEN = [
    rules.f, rules.table, rules.picked, rules.by_name, rules.counted, rules.connected, other.outer, other.inside,
    lambda n: rules.f(n), lambda n: rules.Point(2).scaled(), lambda n: rules.Derived().name(), lambda n: rules.Shape().sides(), lambda n: rules.cached(n), lambda n: rules.point(3).scaled(),
    lambda n: rules.Color.RED is rules.Color(1), lambda n: rules.clock(n) if rules.clock(n) == 12 else "now",
]
for function in SEEN:
    print(seen(function))
made = gm.range(1).map(rules.point).collect()
assert type(made[0]) is rules.Point and made[0].scaled() == 0
try:
    gm.range(1).map(rules.fails).collect()
except gm.JobError as error:
    assert type(error.__cause__) is rules.Wrong, error
assert gm.from_iterable([rules.Point(4)]).map(lambda p: p.scaled()).collect() == [rules.Point(4).scaled()]
assert gm.from_iterable([rules.Color.RED]).map(lambda c: c is rules.Color.RED).collect() == [True]
"""


def ran(program: str, way: str, folder: Path) -> str:
    """Returns what a program prints, with one thread or with several."""
    (folder / "pkg").mkdir(parents=True, exist_ok=True)
    (folder / "rules.py").write_text(RULES)
    (folder / "other.py").write_text(OTHER)
    (folder / "late.py").write_text("VALUE = 'as imported'\n")
    (folder / "pkg/__init__.py").write_text("")
    (folder / "pkg/sub.py").write_text("X = 'as imported'\n")
    (folder / "job.py").write_text(program)
    done = subprocess.run([sys.executable, "-B", folder / "job.py", way], capture_output=True, text=True, timeout=120, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("change", CHANGES)
def test_workers_see_what_the_program_has_changed(change: str, tmp_path: Path) -> None:
    program = START + CHANGES[change] + END
    assert ran(program, "threads", tmp_path / "two") == ran(program, "one", tmp_path / "one")


def test_a_variable_that_is_set_is_seen_by_the_next_job(tmp_path: Path) -> None:
    assert ran(START + "rules.FACTOR = 100; print(seen(lambda n: rules.f(3)))", "threads", tmp_path).endswith("[[300], [300]]\n")


def test_what_was_changed_and_cannot_be_sent_is_named(tmp_path: Path) -> None:
    """A patched variable that cannot be pickled left the old one in place, without a word."""
    program = START + "rules.pick = threading.local()\ntry: seen(rules.picked)\nexcept gm.PlanError as error: print(error)"
    assert "functions of the job use rules.pick, which was changed after rules was imported" in ran(program, "threads", tmp_path)
    # A job that does not use it runs.
    assert ran(START + "rules.pick = threading.local(); print(seen(rules.f))", "threads", tmp_path / "b").endswith("[[0], [0]]\n")
    # So does one that makes it where it is needed.
    assert ran(START + "rules.connection = threading.local(); print(seen(rules.connected))", "threads", tmp_path / "c").endswith(
        "[['made in '], ['made in ']]\n"
    )


CODE = """
RATE = 3
class Point:
    def __init__(self, x): self.x = x
def helper(n): return n * RATE
def f(n): return Point(helper(n))
"""
#: Modules that no other process can import.
NO_FILE = {
    "made by the program": "made = types.ModuleType('made'); exec(code, vars(made)); sys.modules['made'] = made",
    "loaded from a file": """
Path('odd.py').write_text(code)
spec = importlib.util.spec_from_file_location('made', 'odd.py')
made = importlib.util.module_from_spec(spec)
sys.modules['made'] = made
spec.loader.exec_module(made)
""",
    "which ends other programs": """
Path('made.py').write_text(code + "import sys\\nif sys.argv[0] != 'job': sys.exit(3)")
sys.argv[0] = 'job'
import made
sys.argv[0] = ''
""",
}


@pytest.mark.parametrize("way", NO_FILE)
def test_a_module_that_cannot_be_imported_travels(way: str, tmp_path: Path) -> None:
    """Functions of a test module that pytest had loaded from its file ended the job: "No module named ..."."""
    program = f"""
import importlib.util, sys, threading, time, types
from pathlib import Path
import gristmill as gm
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
code = {CODE!r}
{NO_FILE[way]}
for rate in 3, 5:
    made.RATE = rate
    (point,) = gm.from_iterable([7]).map(made.f).collect()
    assert type(point) is made.Point and point.x == 7 * rate, point.x
print("done")
"""
    assert ran(program, "threads", tmp_path) == "done\n"
