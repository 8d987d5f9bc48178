"""A mutation run: small mistakes are put into graphprep, one at a time; the tests that reach the line must notice.

``python tests/mutants/run.py --count 150 --seed 1`` prints every mistake that no test noticed, and the share that one did.

It copies the tree into ``.mutants/``, draws mutants, and runs the tests there once to see which of them reach which mutant;
a compiled line is reached by the tests that call its kernel. Then each mutant meets its tests.
Exit code 1: something survived. Is it no mistake at all (a bound that only makes things faster), no test can tell.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
WORK = HOME / ".mutants"
TREE = WORK / "tree"
PACKAGE = TREE / "graphprep"
# What takes long, needs what not everybody has, or checks the pages.
MAPPED = [
    "-m",
    "not heavy and not client",
    "--ignore=tests/docs",
    "--ignore=tests/clients",
    "--ignore=tests/packaging",
]
PYTEST = [sys.executable, "-m", "pytest", "--hypothesis-profile=ci"]
LIMIT_S = 100  # for a test
COMPILING_S = 300  # and where kernels are compiled in it

SWAPS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt,), ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt,),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.FloorDiv, ast.Add), ast.FloorDiv: (ast.Mult,), ast.Div: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,), ast.LShift: (ast.RShift,), ast.RShift: (ast.LShift,), ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,),
    ast.BitXor: (ast.BitOr,), ast.And: (ast.Or,), ast.Or: (ast.And,),
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One mistake: ``node`` becomes ``new``. It stands in ``functions``, or else below the class or constants ``names``."""

    path: Path
    node: ast.AST
    statement: ast.stmt
    functions: tuple[ast.FunctionDef, ...]
    names: tuple[str, ...]
    new: str

    @property
    def place(self) -> str:
        return f"{self.path.relative_to(TREE)}:{self.node.lineno}"  # type: ignore[attr-defined]

    def source(self, text: str) -> tuple[str, str]:
        """Return the whole file with the mistake, and what stood there."""
        lines = text.encode().splitlines(keepends=True)
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line))
        node, data = self.node, text.encode()
        start = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        stop = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        return (data[:start] + self.new.encode() + data[stop:]).decode(), data[start:stop].decode()


class Sites(ast.NodeVisitor):
    """Finds every mistake that a file can be given: no texts, types, decorators or assertions."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: list[Mutant] = []
        self.statement: ast.stmt | None = None
        self.functions: tuple[ast.FunctionDef, ...] = ()
        self.names: tuple[str, ...] = ()
        self.generic_visit(ast.parse(path.read_text()))

    def add(self, node: ast.AST, new: ast.AST | str) -> None:
        text = new if isinstance(new, str) else f"({ast.unparse(new)})"
        if self.statement is not None:
            self.found.append(Mutant(self.path, node, self.statement, self.functions, self.names, text))

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
            return  # in f-strings, Python 3.11 does not know where a node stands
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        outer, self.statement = self.statement, node if isinstance(node, ast.stmt) else self.statement
        for new in mistakes(node):
            self.add(node, new)
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            self.add(node.test, ast.UnaryOp(ast.Not(), node.test))
        if isinstance(node, ast.FunctionDef):
            self.functions += (node,)
            for part in (*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body):
                self.visit(part)
            self.functions = self.functions[:-1]
        elif isinstance(node, ast.ClassDef):
            self.names = (node.name,)
            for part in node.body:
                self.visit(part)
            self.names = ()
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.visit(node.value)
        elif isinstance(node, ast.Assign) and not self.functions and not self.names:
            self.names = tuple(one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name))
            self.visit(node.value)
            self.names = ()
        else:
            self.generic_visit(node)
        self.statement = outer


def mistakes(node: ast.AST) -> Iterator[ast.AST | str]:
    """Yield what a node may become."""
    if isinstance(node, ast.Compare):
        for at, op in enumerate(node.ops):
            yield from (with_field(node, "ops", [*node.ops[:at], new(), *node.ops[at + 1 :]]) for new in SWAPS[type(op)])
    elif isinstance(node, ast.BinOp | ast.BoolOp):
        yield from (with_field(node, "op", new()) for new in SWAPS.get(type(node.op), ()))
    elif isinstance(node, ast.AugAssign):
        yield "pass"
        yield from (ast.unparse(with_field(node, "op", new())) for new in SWAPS.get(type(node.op), ()))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield ast.Constant(node.value + 1)
        yield ast.Constant(node.value - 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Call):
        names = [isinstance(one, ast.Name | ast.Attribute) for one in node.args]
        for at in (at for at in range(len(names) - 1) if names[at] and names[at + 1]):
            yield with_field(node, "args", [*node.args[:at], node.args[at + 1], node.args[at], *node.args[at + 2 :]])
    elif isinstance(node, ast.Raise | ast.Continue | ast.Break) or is_call(node) or is_store(node):
        yield "pass"


def with_field(node: ast.AST, name: str, value: object) -> ast.AST:
    changed = deepcopy(node)
    setattr(changed, name, value)
    return changed


def is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def is_store(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)


class Package:
    """The functions of graphprep, and where they stand that reach a mutant."""

    def __init__(self) -> None:
        self.texts = {path: path.read_text() for path in sources()}
        self.functions = {
            path: [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
            for path, text in self.texts.items()
        }

    def places_of(self, mutant: Mutant) -> set[str]:
        """Name the statements (``file:line``) and kernels (``module.name``) one of which runs where a mutant does."""
        if mutant.functions and mutant.statement not in mutant.functions:
            return self._at(mutant.path, mutant.functions, mutant.statement.lineno)
        if mutant.functions:  # a default of an argument
            return self._at(mutant.path, mutant.functions, start_of(mutant.functions[-1]))
        # A field of a class, a constant of a module: wherever its name stands, and all of the module.
        named = [(path, (function,), line) for name in mutant.names for path, function, line in self.mentions[name]]
        own = [(mutant.path, (one,), start_of(one)) for one in self.functions[mutant.path]]
        return set().union(*(self._at(*place) for place in [*named, *own]))

    def _at(self, path: Path, functions: tuple[ast.FunctionDef, ...], line: int) -> set[str]:
        kernel = next((one.name for one in functions if is_kernel(one)), None)
        return {f"{path}:{line}"} if kernel is None else self._kernels(path, kernel)

    def _kernels(self, path: Path, kernel: str) -> set[str]:
        """Name a kernel, and those that call it, also through others."""
        seen, pending = {(path, kernel)}, [(path, kernel)]
        while pending:
            home, name = pending.pop()
            for other, function, _ in self.mentions[name]:
                is_same_name = other == home or f"{home.stem} import" in self.texts[other]
                if is_same_name and is_kernel(function) and (other, function.name) not in seen:
                    seen.add((other, function.name))
                    pending.append((other, function.name))
        return {f"{'.'.join(path.relative_to(TREE).with_suffix('').parts)}.{name}" for path, name in seen}

    @cached_property
    def mentions(self) -> dict[str, list[tuple[Path, ast.FunctionDef, int]]]:
        """Where names stand: the file, the function, and the line of the statement."""
        found = defaultdict(list)
        for path, functions in self.functions.items():
            for function in functions:
                for statement in (node for one in function.body for node in ast.walk(one) if isinstance(node, ast.stmt)):
                    for part in ast.iter_child_nodes(statement):
                        if not isinstance(part, ast.stmt):
                            for name in {node.id for node in ast.walk(part) if isinstance(node, ast.Name)}:
                                found[name].append((path, function, statement.lineno))
        return found


def start_of(function: ast.FunctionDef) -> int:
    """Return the line of the first statement, behind the docstring."""
    has_more = len(function.body) > 1 and ast.get_docstring(function) is not None
    return function.body[1 if has_more else 0].lineno


def is_kernel(function: ast.FunctionDef) -> bool:
    return any("njit" in ast.unparse(one) or "intrinsic" in ast.unparse(one) for one in function.decorator_list)


def sources() -> list[Path]:
    """List what mutants are made of: all but the suites that other packages' tests inherit."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent.name != "testing"]


def copy_tree() -> None:
    shutil.rmtree(WORK, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files"], cwd=HOME, check=True, capture_output=True, text=True).stdout
    for name in filter(lambda name: (HOME / name).is_file(), listed.splitlines()):
        (TREE / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(HOME / name, TREE / name)


def run_tests(flags: Sequence[str], log: Path, kernels: Path, **environment: str) -> int:
    """Run tests over the copy and return pytest's exit code."""
    paths = {"PYTHONPATH": str(TREE), "NUMBA_CACHE_DIR": str(kernels)}
    with log.open("w") as file:
        everything = os.environ | paths | environment
        return subprocess.run([*PYTEST, *flags], cwd=TREE, env=everything, stdout=file, stderr=file, check=False).returncode


def find_tests(mutants: list[Mutant]) -> None:
    """Run the tests once, and note which of them reach which mutants."""
    package = Package()
    lines = [f"{number} {place}\n" for number, mutant in enumerate(mutants, 1) for place in sorted(package.places_of(mutant))]
    (WORK / "marks").write_text("".join(lines))
    kernels = Path(os.environ.get("NUMBA_CACHE_DIR") or next(HOME.glob("graphprep/kernels/**/jit.py")).parent / "__pycache__")
    flags = ["-n", "2", "--dist", "loadgroup", "--durations=0", "--durations-min=0", "-vv", *MAPPED]
    code = run_tests(flags, WORK / "map.log", kernels, PYTHONPATH=f"{TREE / 'tests/mutants'}:{TREE}")
    if code not in (0, 1):  # 1: some tests fail, which are left out
        sys.exit(f"error: the tests ended with {code} before it was known which of them reach what: {WORK / 'map.log'}")
    for folder in list(PACKAGE.rglob("__pycache__")):
        shutil.rmtree(folder)  # of modules with notes
    subprocess.run([sys.executable, "-m", "compileall", "-q", PACKAGE], check=True)
    shutil.copytree(kernels, WORK / "kernels")


class Reach:
    """Which tests reach a mutant, and how long they take, in seconds. Tests that fail without it are none."""

    def __init__(self) -> None:
        log = (WORK / "map.log").read_text()
        failed = set(re.findall(r"^(?:FAILED|ERROR) (.*?)(?:@\w+)?(?: - .*)?$", log, re.MULTILINE))
        self.seconds: dict[str, float] = defaultdict(float)
        for seconds, test in re.findall(r"^([\d.]+)s (?:call|setup) +(.*?)(?:@\w+)?$", log, re.MULTILINE):
            self.seconds[test] += float(seconds)
        self.tests: dict[int, set[str]] = defaultdict(set)
        for number, test in re.findall(r"^(\d+) (.*?)(?:@\w+)?$", (WORK / "reached").read_text(), re.MULTILINE):
            if test in self.seconds and test not in failed:
                self.tests[int(number)].add(test)

    def tests_of(self, number: int, most_s: float) -> list[str]:
        """Return the quickest tests that reach a mutant: those that take ``most_s`` together."""
        tests = sorted(self.tests[number], key=lambda test: (self.seconds[test], test))
        total = list(accumulate(self.seconds[test] for test in tests))
        return tests[: max(1, bisect_right(total, most_s))]


def failures(tests: list[str], kernels: Path, limit_s: int, *flags: str) -> list[str]:
    """Run tests over the copy as it is now; return what pytest says of those that fail."""
    (WORK / "tests").write_text("\n".join(tests))
    flags = (*flags, "-q", f"--timeout={limit_s}", "--timeout-method=thread", f"@{WORK / 'tests'}")
    code = run_tests(flags, WORK / "last.log", kernels, PYTHONDONTWRITEBYTECODE="1")
    found = re.findall(r"^(?:FAILED|ERROR) (.*)", (WORK / "last.log").read_text(errors="replace"), re.MULTILINE)
    return (found or [f"pytest ended with {code}: a crash, or out of time"]) if code else []


def killer(mutant: Mutant, tests: list[str]) -> str:
    """Run tests over a mutant; return what failed first, nothing where all pass."""
    text, stamp = mutant.path.read_text(), mutant.path.stat()
    kernels, limit_s = WORK / "kernels", LIMIT_S
    if "kernels" in mutant.path.parts:  # what is compiled of the mutant must not take the place of what is kept
        kernels, limit_s = Path(shutil.copytree(kernels, WORK / "kernels-of-mutant")), COMPILING_S
    try:
        mutant.path.write_text(mutant.source(text)[0])
        return next(iter(failures(tests, kernels, limit_s, "-x")), "")
    finally:
        mutant.path.write_text(text)
        os.utime(mutant.path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # what is compiled stays valid
        shutil.rmtree(WORK / "kernels-of-mutant", ignore_errors=True)


def choose(count: int, seed: int) -> list[Mutant]:
    """Draw mutants, one a line at most."""
    found = [mutant for path in sources() for mutant in Sites(path).found]
    random.Random(seed).shuffle(found)
    return list({mutant.place: mutant for mutant in reversed(found)}.values())[::-1][:count]


def main() -> int:
    parser = argparse.ArgumentParser(description="Put small mistakes into graphprep; tests must notice.")
    parser.add_argument("--count", type=int, default=20, help="mutants to try [default: 20]")
    parser.add_argument("--seed", type=int, default=0, help="which ones [default: 0]")
    parser.add_argument(
        "--first", type=int, help="go on with this one, over the copy that the last run with these mutants made"
    )
    parser.add_argument("--seconds", type=float, default=120, help="of tests a mutant, the quick ones first [default: 120]")
    args = parser.parse_args()
    if args.first is None:
        copy_tree()
    mutants = choose(args.count, args.seed)
    if args.first is None:
        print(f"which tests reach {len(mutants)} mutants: {WORK / 'map.log'}", flush=True)
        find_tests(mutants)
    reach, killers, tried = Reach(), set[str](), list(enumerate(mutants, 1))[(args.first or 1) - 1 :]
    num_killed = 0
    for number, mutant in tried:
        tests = reach.tests_of(number, args.seconds)
        killed_by = killer(mutant, tests) if tests else ""
        num_killed += bool(killed_by)
        killers |= {test for test in tests if f"{killed_by} ".startswith(f"{test} ")}
        old = mutant.source(mutant.path.read_text())[1]
        words = "killed" if killed_by else f"SURVIVED {len(tests)} of {len(reach.tests[number])} tests"
        print(f"{number:4} {words} {mutant.place}: {' '.join(old.split())} -> {mutant.new}", flush=True)
        print(f"     {killed_by[:200]}" if killed_by else "", flush=True)
    print(f"{num_killed} of {len(tried)} mutants killed ({num_killed / max(1, len(tried)):.0%})")
    unsure = failures(sorted(killers), WORK / "kernels", COMPILING_S) if killers else []
    print("".join(f"fails without a mutant, too: {one}\n" for one in unsure), end="")
    return 1 if num_killed < len(tried) or unsure else 0


if __name__ == "__main__":
    sys.exit(main())
