"""A mutation run: small mistakes are put into graphprep, one at a time; the tests that reach the line must notice.

``python tests/mutants.py --count 150 --seed 1`` prints every mistake that no test noticed, and the share that one did.

The first run copies the tree into ``.mutants/`` and runs its tests there once to see which of them reach which line; ``--renew``
does so again. Mutants are made of that copy. Compiled lines are reached by the tests that reach a call of their function.
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
from collections import defaultdict
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
WORK = HOME / ".mutants"
TREE = WORK / "tree"
PACKAGE = TREE / "graphprep"
# What takes long, needs what not everybody has, or checks the pages.
MAPPED = ["-m", "not slow and not client", "--ignore=tests/docs", "--ignore=tests/clients", "--ignore=tests/packaging"]
PYTEST = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--hypothesis-profile=ci"]
LIMIT_S = 300  # for a test; kernels are compiled in it

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
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
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


class Reach:
    """Which tests reach a line, by the coverage of the run that made the map, and how long they take, in seconds."""

    def __init__(self) -> None:
        from coverage import CoverageData

        self.data = CoverageData(str(WORK / "coverage"))
        self.data.read()
        log = (WORK / "map.log").read_text()
        found = re.findall(r"^([\d.]+)s (?:call|setup) +(.*?)(?:@\w+)?$", log, re.MULTILINE)
        self.failed = set(re.findall(r"^(?:FAILED|ERROR) (.*?)(?:@\w+)?(?: - .*)?$", log, re.MULTILINE))
        self.seconds: dict[str, float] = defaultdict(float)
        for seconds, test in found:
            self.seconds[test] += float(seconds)

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach a mutant, the quick ones first."""
        if mutant.functions and mutant.statement not in mutant.functions:
            found = self._at(mutant.path, mutant.functions, mutant.statement.lineno)
        elif mutant.functions:  # a default of an argument
            found = self._of(mutant.path, mutant.functions)
        else:  # a field of a class, a constant of a module: wherever its name stands
            places = [(path, (function,), line) for name in mutant.names for path, function, line in self.mentions[name]]
            own = [(mutant.path, (one,), part.lineno) for one in self.functions[mutant.path] for part in one.body]
            found = set().union(*(self._at(*place) for place in [*places, *own]))
        return sorted(found - self.failed, key=lambda test: self.seconds[test])

    def _of(self, path: Path, functions: tuple[ast.FunctionDef, ...]) -> set[str]:
        return set().union(*(self._at(path, functions, one.lineno) for one in functions[-1].body))

    def _at(self, path: Path, functions: tuple[ast.FunctionDef, ...], line: int) -> set[str]:
        kernel = next((one.name for one in functions if is_kernel(one)), None)
        if kernel is None:
            contexts = self.data.contexts_by_lineno(str(path)).get(line, [])
            return {re.sub(r"(@\w+)?\|\w+$", "", context) for context in contexts} - {""}
        return set().union(*(self._at(*one) for one in self._callers(path, kernel)))

    def _callers(self, path: Path, kernel: str) -> Iterator[tuple[Path, tuple[ast.FunctionDef, ...], int]]:
        """Yield the places in functions without ``@njit`` from which a kernel is called, through other kernels."""
        seen, pending = {(path, kernel)}, [(path, kernel)]
        while pending:
            home, name = pending.pop()
            for other, function, line in self.mentions[name]:
                if other != home and f"{home.stem} import" not in self.texts[other]:
                    continue
                if not is_kernel(function):
                    yield other, (function,), line
                elif (other, function.name) not in seen:
                    seen.add((other, function.name))
                    pending.append((other, function.name))

    @cached_property
    def texts(self) -> dict[Path, str]:
        return {path: path.read_text() for path in sources()}

    @cached_property
    def functions(self) -> dict[Path, list[ast.FunctionDef]]:
        return {
            path: [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
            for path, text in self.texts.items()
        }

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


def is_kernel(function: ast.FunctionDef) -> bool:
    return any("njit" in ast.unparse(one) or "intrinsic" in ast.unparse(one) for one in function.decorator_list)


def sources() -> list[Path]:
    """List what mutants are made of: all but the suites that other packages' tests inherit."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent.name != "testing"]


def environment() -> dict[str, str]:
    return os.environ | {
        "PYTHONPATH": str(TREE),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(WORK / "kernels"),
        "COVERAGE_FILE": str(WORK / "coverage"),
    }


def make_map() -> None:
    """Copy the tree, and run its tests to see which lines each of them reaches."""
    shutil.rmtree(WORK, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files"], cwd=HOME, check=True, capture_output=True, text=True).stdout
    for name in filter(lambda name: (HOME / name).is_file(), listed.splitlines()):
        (TREE / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(HOME / name, TREE / name)
    (WORK / "kernels").mkdir(mode=0o700)
    print(f"which tests reach which lines: {WORK / 'map.log'}", flush=True)
    with (WORK / "map.log").open("w") as log:
        flags = ["--cov=graphprep", "--cov-context=test", "--cov-report=", "--durations=0", "--durations-min=0", "-vv"]
        subprocess.run(
            [*PYTEST, "-n", "2", "--dist", "loadgroup", *flags, *MAPPED],
            cwd=TREE,
            env=environment(),
            stdout=log,
            stderr=log,
            check=False,
        )


def killer(mutant: Mutant, tests: list[str]) -> str:
    """Run tests over a mutant; return what failed first, nothing where all pass."""
    text, stamp = mutant.path.read_text(), mutant.path.stat()
    (WORK / "tests.txt").write_text("\n".join(tests))
    command = [*PYTEST, "-x", "-q", f"--timeout={LIMIT_S}", "--timeout-method=thread", f"@{WORK / 'tests.txt'}"]
    try:
        mutant.path.write_text(mutant.source(text)[0])
        done = subprocess.run(command, cwd=TREE, env=environment(), capture_output=True, check=False)
        (WORK / "last.log").write_bytes(done.stdout + done.stderr)
        words = re.findall(r"^(?:FAILED|ERROR) .*", done.stdout.decode(errors="replace"), re.MULTILINE)
        return (words or ["the tests ended"])[0] if done.returncode else ""
    finally:
        mutant.path.write_text(text)
        os.utime(mutant.path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # what is compiled stays valid


def choose(count: int, seed: int) -> list[Mutant]:
    """Draw mutants, one a line at most."""
    found = [mutant for path in sources() for mutant in Sites(path).found]
    random.Random(seed).shuffle(found)
    return list({mutant.place: mutant for mutant in reversed(found)}.values())[::-1][:count]


def within(tests: list[str], reach: Reach, most_s: float) -> list[str]:
    """Return the first tests that take no longer together."""
    total, chosen = 0.0, []
    for test in tests:
        total += reach.seconds[test]
        if total > most_s and chosen:
            break
        chosen.append(test)
    return chosen


def main() -> int:
    parser = argparse.ArgumentParser(description="Put small mistakes into graphprep; tests must notice.")
    parser.add_argument("--count", type=int, default=20, help="mutants to try [default: 20]")
    parser.add_argument("--seed", type=int, default=0, help="which ones [default: 0]")
    parser.add_argument("--first", type=int, default=1, help="go on with this one [default: 1]")
    parser.add_argument("--seconds", type=float, default=600, help="of tests a mutant, the quick ones first [default: 600]")
    parser.add_argument("--renew", action="store_true", help="copy the tree, and find out anew which tests reach which lines")
    args = parser.parse_args()
    if args.renew or not (WORK / "coverage").exists():
        make_map()
    reach, survivors = Reach(), 0
    chosen_mutants = choose(args.count, args.seed)[args.first - 1 :]
    for number, mutant in enumerate(chosen_mutants, args.first):
        tests = reach.tests_of(mutant)
        chosen = within(tests, reach, args.seconds)
        killed_by = killer(mutant, chosen) if tests else ""
        survivors += not killed_by
        old = mutant.source(mutant.path.read_text())[1]
        words = "killed" if killed_by else f"SURVIVED {len(chosen)} of {len(tests)} tests"
        print(f"{number:4} {words} {mutant.place}: {' '.join(old.split())} -> {mutant.new}", flush=True)
        print(f"     {killed_by[:200]}" if killed_by else "", flush=True)
    tried = len(chosen_mutants)
    print(f"{tried - survivors} of {tried} mutants killed ({1 - survivors / max(1, tried):.0%})")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
