"""A suspended generator runs its `finally` blocks at the moment when the last that refers to it
lets it go."""

# mypy: ignore-errors

from __future__ import annotations

import contextlib
import itertools
import operator

from integration_tests.corpora.behaviours import program


def parts(x, log, *values):
    try:
        for value in values:
            yield value * x
    finally:
        log.append(("closed", values[0]))


class Parts:
    def __init__(self, x, log):
        self.x, self.log = x, log

    def __iter__(self):
        yield from parts(self.x, self.log, 1, 2, 3)

    @property
    def some(self):
        return parts(self.x, self.log, 4, 5)


KEPT = {}


@program(breaks="generator-dropped")
def an_operand_of_a_call(x, n, box):
    log = box.log
    found = next(parts(x, log, 1, 2)), next(Parts(x, log).some), parts(x, log, 3, 4).send(None)
    log.append("after")
    return found, next(part for part in parts(x, log, n, 6)), log.append("end")


@program(breaks="generator-dropped")
def an_operand_of_a_test(x, n, box):
    log = box.log
    found = (
        2 in parts(1, log, 1, 2, 3),
        9 not in parts(1, log, 4),
        operator.contains(parts(1, log, n, 5), n),
    )
    log.append("after")
    return found, any(part > 1 for part in parts(1, log, 1, 2, 3)), log.append("end"), x + 1


@program(breaks="generator-dropped")
def held_by_an_iterator(x, n, box):
    log = box.log
    for part in (
        enumerate,
        iter,
        lambda each: zip(each, "ab"),
        lambda each: map(str, each),
        itertools.chain,
    ):
        for _ in part(parts(n, log, 1, 2)):
            break
        log.append("next")
    return (
        list(itertools.islice(parts(x, log, 1, 2), 1)),
        list(zip("a", parts(x, log, 3, 4), strict=False)),
        log[:],
    )


@program(breaks="generator-dropped")
def held_by_a_suspended_generator(x, n, box):
    for left, _ in zip(Parts(x, box.log), Parts(x, box.log), strict=True):
        box.log.append("inside")
        break
    box.log.append("after")
    return left, next(iter(Parts(x, box.log))), box.log.append("end")


@program(breaks="generator-dropped")
def unpacked_into_too_few(x, n, box):
    try:
        a, b = parts(x, box.log, 1, 2, 3)
    except ValueError as error:
        box.log.append(str(error))
    try:
        sum(parts("s", box.log, 1, 2))
    except TypeError:
        box.log.append("no sum")
    return x + n


@program(breaks="generator-dropped")
def a_loop_that_raises(x, n, box):
    try:
        for part in parts(x, box.log, 1, 2):
            raise KeyError(n)
    except KeyError:
        box.log.append("caught")
    return part


@program(breaks="generator-dropped")
def replaced_in_a_container(x, n, box):
    items = [parts(x, box.log, 1, 2)]
    found = next(items[0])
    items[0] = None
    box.log.append("replaced")
    return found


@program(breaks="generator-dropped")
def popped_from_a_container(x, n, box):
    items = {"a": parts(x, box.log, 1, 2), "b": parts(x, box.log, 3, 4)}
    found = next(items["a"]), next(items["b"])
    last = items.pop("b")
    box.log.append("popped")
    del items["a"]
    box.log.append("deleted")
    return found, next(last)


@program(breaks="generator-dropped")
def replaced_in_a_variable_of_other_functions(x, n, box):
    def forget():
        nonlocal part
        part = None
        box.log.append("forgotten")

    part = parts(x, box.log, 1, 2)
    found = [next(part)]
    part = parts(x, box.log, 3, 4)
    box.log.append("replaced")
    found.append(next(part))
    forget()
    part = parts(x, box.log, 5, 6)
    found.append(next(part))
    del part
    return found, box.log.append("deleted")


@program(breaks="generator-dropped")
def replaced_in_a_global(x, n, box):
    global PART
    PART = parts(x, box.log, 1, 2)
    found = next(PART)
    PART = parts(x, box.log, 3, 4)
    box.log.append("replaced")
    found += next(PART)
    del PART
    box.log.append("deleted")
    rows = {parts(x, box.log, 5, 6)}
    found += next(next(iter(rows)))
    rows.clear()
    return found, box.log.append("cleared")


@program
def kept_by_something_else(x, n, box):
    rows = enumerate(parts(x, box.log, 1, 2))
    found = next(rows)
    KEPT["rows"] = rows
    rows = None
    box.log.append("kept")
    return found, list(KEPT.pop("rows")), box.log.append("end")


@contextlib.contextmanager
def noted(log, name):
    try:
        yield name
    finally:
        log.append(name)


@program
def managers_are_not_abandoned(x, n, box):
    with noted(box.log, "outer"), noted(box.log, "inner") as name:
        with contextlib.ExitStack() as stack:
            stack.enter_context(noted(box.log, "stacked"))
            found = [part for part in parts(x, box.log, 1, 2)]
        box.log.append(name)
    return found
