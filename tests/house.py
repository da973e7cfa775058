"""How the house is read: modules, what each imports and calls, and the rules they are held to.

`test_tidy.py` applies the rules. A rule that must give way for one place says why in its own line.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "proxy" / "quietus"
TESTS = ROOT / "tests"

LINES_PER_FILE = 300
LINES_PER_FUNCTION = 60

# Which parts a part may import, besides itself. A part is a package or a module right below `quietus`.
PURE = {"core", "profiles"}
HELD = PURE | {"patience", "ports", "key_file", "keys", "permits", "metrics", "logs", "settings", "documents",
               "receipts", "shown", "shown_decisions", "shown_receipts"}
"""What the engine stands on: nothing of it decides, and nothing of it knows a wire or a database."""
ENGINE = {
    "acts", "answers", "arrivals", "attribution", "barrier", "bypass", "collecting", "conversation_ports",
    "conversing", "decided", "decided_kept", "deciding", "demands", "driven", "erasures", "flights",
    "forgets", "forgetting", "gateway", "inquiry", "intents", "judging", "kept", "lease", "lineage",
    "lineage_descent", "lineage_rounds", "marking", "messages", "order_views", "ordering", "outgoing",
    "owners", "prober", "questions", "reconciler", "recording", "release", "remedies", "repeats",
    "replicas", "restating", "roster", "rounds", "scan", "shapes", "shelf", "snapshots", "snapshotter",
    "streams", "timetable", "trials", "views", "waiting", "watched", "whys",
}  # fmt: skip
"""What forwards, screens, probes and judges. Within it only circles are refused."""
WHOLE = HELD | ENGINE | {"policies", "assembly"}
"""The engine put together: what an edge may be given."""
LAYERS: dict[str, set[str]] = {
    "core": set(),
    "profiles": {"core"},
    "ports": {"core"},
    "patience": {"ports"},
    "permits": {"core", "ports"},
    "key_file": set(),
    "keys": {"core", "key_file"},
    "shown": {"core"},
    "shown_decisions": {"core", "shown"},
    "shown_receipts": {"core", "shown"},
    "receipts": {"core", "keys", "shown", "shown_receipts"},
    "metrics": {"core"},
    "logs": {"core"},
    "documents": PURE,
    "settings": PURE | {"settings_ledger", "settings_reviews", "settings_tls"},
    "settings_ledger": PURE,
    "settings_reviews": PURE,
    "settings_tls": set(),
    "ledger_server": {"keys", "ledger", "ports", "settings", "settings_ledger"},
    "config": PURE | {"documents", "settings"},
    "policies": PURE | {"documents"},
    "policy_cases": PURE | {"documents", "policies"},
    "ledger": {"core", "ports"},
    **dict.fromkeys(ENGINE, HELD | ENGINE),
    "trial": {"core", "profiles", "ports", "permits"},
    "describing": PURE,
    "assembly": HELD | ENGINE,
    "gauges": WHOLE,
    "reloading": WHOLE,
    "adapters": HELD | ENGINE,
    "admin": WHOLE | {"adapters", "stubs"},
    "wires": WHOLE | {"adapters"},
    "stubs": set(),
    "legacy": {"core", "ports", "stubs"},
    "inject": {"ports"},
    "tracing": WHOLE | {"adapters"},
    "certificates": PURE | {"ports", "settings"},
    "workers": {"core", "ports", "ledger"},
    "opening": WHOLE | {"ledger", "ledger_server"},
    "process": WHOLE | {
        "admin", "certificates", "config", "gauges", "ledger", "opening", "reloading", "tracing", "wires"},
    "crew_figures": WHOLE | {"admin", "workers"},
    "supervisor": WHOLE | {"adapters", "crew_figures", "ledger", "workers"},
    "worker": {"app", "ledger", "logs", "opening", "process", "settings", "workers"},
    "app": WHOLE | {"adapters", "admin", "config", "opening", "process", "supervisor", "wires",
            "workers"},
    "cli": WHOLE | {"config", "policy_cases", "ledger", "admin", "legacy", "app", "opening", "trial",
        "inject", "wires", "describing"},
}


@dataclass(frozen=True, slots=True)
class Module:
    """One file, parsed."""

    path: Path
    tree: ast.Module
    lines: tuple[str, ...]

    @property
    def name(self) -> str:
        """Where it stands, as a reader finds it."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def dotted(self) -> str:
        """Its name as an import says it."""
        place = self.path.relative_to(PACKAGE.parent).with_suffix("")
        return ".".join(place.parts).removesuffix(".__init__")

    @property
    def part(self) -> str:
        """The part of the package that it belongs to; "" for the package's own `__init__`."""
        first = self.path.relative_to(PACKAGE).parts[0]
        return "" if first == "__init__.py" else first.removesuffix(".py")


@dataclass(frozen=True, slots=True)
class Ban:
    """A name that may not be used, why, and where it may be all the same."""

    name: str
    reason: str
    but: tuple[str, ...] = ()
    """Files, or folders with a slash at the end, relative to the root."""

    def holds(self, dotted: str, module: Module) -> bool:
        """Whether `dotted`, used in `module`, breaks it. A name ending in a dot bans all below it."""
        hit = dotted.startswith(self.name) if self.name.endswith(".") else dotted == self.name
        return hit and not any(
            module.name.startswith(place) if place.endswith("/") else module.name == place
            for place in self.but
        )


CLOCK = ("proxy/quietus/app.py", "proxy/quietus/clock.py")
CONFIG = ("proxy/quietus/config.py",)
CLI = ("proxy/quietus/cli.py", "proxy/quietus/cli/")
_TIME = "only a Clock tells the time, so that a test can move it and a jump of it settles nothing"
_RANDOM = "the module's own generator cannot be seeded from outside; pass a random.Random"
BANNED = (
    *(Ban(f"time.{name}", _TIME, CLOCK) for name in (
        "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "clock_gettime",
        "sleep")),
    *(Ban(f"datetime.datetime.{name}", _TIME, CLOCK) for name in ("now", "utcnow", "today")),
    Ban("datetime.date.today", _TIME, CLOCK),
    Ban("asyncio.sleep", "waiting is the Clock's, so that a test can move it; 0 gives way", CLOCK),
    Ban("os.environ", "settings come from config, which says where each came from", CONFIG),
    Ban("os.getenv", "settings come from config, which says where each came from", CONFIG),
    *(Ban(f"random.{name}", _RANDOM) for name in (
        "random", "randint", "randrange", "choice", "choices", "shuffle", "sample", "uniform", "seed",
        "getrandbits", "gauss", "expovariate")),
    Ban("print", "what the product says goes through the CLI's console or the log", CLI),
    Ban("logging.", "logs are structlog's, where redaction is tested", ("proxy/quietus/app.py",)),
    Ban("eval", "data is data"),
    Ban("exec", "data is data"),
    Ban("pickle.", "what is read back must not be able to run"),
    Ban("hash", "salted per process: two replicas would disagree; use keys.Keyring"),
)
REAL_CLOCK = ("tests/e2e/stores.py",)  # implements Clock for a store in real time
IN_TESTS = (
    Ban("time.sleep", "wait for the event, not for the time"),
    Ban("asyncio.sleep", "wait for the event, not for the time; 0 gives way and is fine", REAL_CLOCK),
    Ban("unittest.mock.", "a mock of our own code shows that the mock works"),
)
IMPURE = {
    "asyncio", "time", "random", "secrets", "os", "socket", "threading", "logging", "structlog", "sqlite3",
    "aiohttp", "grpc", "prometheus_client", "subprocess", "pathlib", "uuid",
}  # fmt: skip
VAGUE = re.compile(r"^(utils?|helpers?|managers?|base|common|misc)$", re.IGNORECASE)
VAGUE_CLASS = re.compile(r"(Utils?|Helpers?|Manager|Common)$|^Base(?=[A-Z])")


@cache
def modules() -> tuple[Module, ...]:
    """Every module of the package."""
    return tuple(_parsed(path) for path in sorted(PACKAGE.rglob("*.py")) if "_pb2" not in path.name)


@cache
def test_modules() -> tuple[Module, ...]:
    """Every module under tests/."""
    return tuple(_parsed(path) for path in sorted(TESTS.rglob("*.py")))


def imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """What is imported, in full, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            yield from ((f"{source}.{alias.name}", node.lineno) for alias in node.names)


def for_types_only(tree: ast.AST) -> set[int]:
    """The lines under `if TYPE_CHECKING:`."""
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for part in node.body
        for line in range(part.lineno, (part.end_lineno or part.lineno) + 1)
    }


def uses(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Every imported name that is used and every plain name that is called, as the import says it.

    `t.time` is `time.time` after `import time as t`.
    """
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known |= {a.asname or a.name.partition(".")[0]: a.name if a.asname else a.name.partition(".")[0]
                      for a in node.names}  # fmt: skip
        elif isinstance(node, ast.ImportFrom) and not node.level:
            known |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and (node.id in known or id(node) in called):
            yield known.get(node.id, node.id), node
        elif isinstance(node, ast.Attribute):
            head, _, rest = ast.unparse(node).partition(".")
            if head in known:
                yield f"{known[head]}.{rest}", node


def zero_sleeps(tree: ast.AST) -> set[int]:
    """Ids of the `asyncio.sleep` nodes that are called with a literal 0."""
    return {
        id(node.func)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and len(node.args) == 1
        and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
    }  # fmt: skip


def functions(tree: ast.AST) -> Iterator[tuple[str, int, int]]:
    """Name, line and length of every function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1


def _parsed(path: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    return Module(path, ast.parse(text, str(path)), tuple(text.splitlines()))
