"""Check that calls name what they pass, and that an assignment changes one kind of thing.

``python tools/check_calls.py [ROOT]`` prints, with its place in the packages, and fails for

- a starred literal in a call, ``f(*(a, b), c=1)``: it hides which parameters get them;
- the splat of a local tuple, ``pair = a, b`` and then ``f(*pair)``, for the same reason;
- the splat of a choice, ``f(*(a or b))`` or ``f(*(a if c else b))``: the value in the middle is to
  have a name;
- the splat of a dict literal, ``f(**{"a": 1})``;
- an assignment of a tuple to a tuple that changes locals and state together,
  ``a, self.b = 1, 2``.

A parameter or a loop variable that is a tuple may be passed on with a star, as may a constant of
the module.
"""

from __future__ import annotations

import ast
import pathlib
import sys
from collections.abc import Iterator

from package_source import Source, read_packages

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = _Function | ast.Module
_Place = tuple[int, str]


def hidden_arguments(source: Source) -> Iterator[str]:
    """Yield the place of each splat and each assignment that the module's docstring names."""
    scopes = [node for node in ast.walk(source.tree) if isinstance(node, _Scope)]
    found = sorted(place for scope in scopes for place in _in_scope(scope))
    for line, text in found:
        yield f"{source.path}:{line}: {text}"


def _in_scope(scope: _Scope) -> Iterator[_Place]:
    nodes = [*_own_nodes(scope)]
    tuples = set() if isinstance(scope, ast.Module) else _local_tuples(scope, nodes)
    for node in nodes:
        if isinstance(node, ast.Call):
            yield from _splats(node, tuples)
        elif isinstance(node, ast.Assign) and _is_mixed(node):
            yield node.lineno, "an assignment to a local and to state"


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below a function or module, without those of functions in it."""
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, _Function):
            yield child
            yield from _own_nodes(child)


def _local_tuples(function: _Function, nodes: list[ast.AST]) -> set[str]:
    """Return the names that the function assigns literals to, and nothing else."""
    arguments = function.args
    passed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    passed += [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    others = {each.arg for each in passed}

    tuples = set()
    literal_targets = set()
    for node in nodes:
        # an argument that is left out at times is a tuple that may be empty: a conditional is none
        is_conditional = isinstance(node, ast.Assign) and isinstance(node.value, ast.IfExp)
        if isinstance(node, ast.Assign) and _is_literal(node.value) and not is_conditional:
            names = [each for each in node.targets if isinstance(each, ast.Name)]
            tuples |= {each.id for each in names}
            literal_targets |= {id(each) for each in names}
    for node in nodes:
        if not isinstance(node, ast.Name) or id(node) in literal_targets:
            continue
        if isinstance(node.ctx, ast.Store):
            others.add(node.id)
    return tuples - others


def _is_literal(value: ast.expr) -> bool:
    """Return True for a tuple or list of which each item is written down, or a choice of them."""
    if isinstance(value, ast.IfExp):
        return _is_literal(value.body) or _is_literal(value.orelse)
    if not isinstance(value, ast.Tuple | ast.List):
        return False
    return not any(isinstance(item, ast.Starred) for item in value.elts)


def _splats(call: ast.Call, tuples: set[str]) -> Iterator[_Place]:
    for argument in call.args:
        if not isinstance(argument, ast.Starred):
            continue
        value = argument.value
        if _is_literal(value):
            yield argument.lineno, f"a starred literal, {ast.unparse(argument)}"
        elif isinstance(value, ast.IfExp | ast.BoolOp):
            yield argument.lineno, f"the splat of a choice, {ast.unparse(argument)}"
        elif isinstance(value, ast.Name) and value.id in tuples:
            yield argument.lineno, f"the splat of a local tuple, *{value.id}"

    for keyword in call.keywords:
        if keyword.arg is None and isinstance(keyword.value, ast.Dict):
            yield keyword.value.lineno, f"the splat of a literal, **{ast.unparse(keyword.value)}"


def _is_mixed(assignment: ast.Assign) -> bool:
    if not isinstance(assignment.value, ast.Tuple):
        return False
    for target in assignment.targets:
        if isinstance(target, ast.Tuple):
            is_state = [_is_state(each) for each in target.elts]
            if any(is_state) and not all(is_state):
                return True
    return False


def _is_state(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple):
        return all(map(_is_state, target.elts))
    return isinstance(target, ast.Attribute | ast.Subscript)


def main(root: pathlib.Path) -> int:
    """Check the packages below ``root``; return the status of the process."""
    sources = [source for found in read_packages(root).values() for source in found]
    problems = [problem for source in sources for problem in hidden_arguments(source)]
    print(*problems, sep="\n" if problems else "")
    return int(bool(problems))


if __name__ == "__main__":
    default = pathlib.Path(__file__).resolve().parents[1]
    sys.exit(main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default))
