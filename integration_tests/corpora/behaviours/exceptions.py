"""Exceptions: type, args, `__cause__`, `__context__`, notes, traceback lines; `try/return/finally`
order; `else`; `raise from`; bare `raise`; exception groups; an operator error caught by the user's
`except`."""

# mypy: ignore-errors

from __future__ import annotations

import contextlib
import sys
import traceback

import torch

from integration_tests.corpora.behaviours import program


class Problem(Exception):
    def __init__(self, code, *more, hint=None):
        super().__init__(code, *more)
        self.code, self.hint = code, hint

    def __str__(self):
        return f"<{self.code}>"


class Worse(Problem, KeyError):
    pass


def fail(n, kind=Problem):
    if n:
        raise kind(n)
    return n


@program
def a_user_exception_keeps_its_attributes(x, n, box):
    try:
        raise Worse(n, "more", hint=x)
    except KeyError as error:
        return (
            error.args,
            error.code,
            error.hint,
            str(error),
            repr(error),
            isinstance(error, Problem),
        )


@program
def raise_from_sets_cause_and_suppresses_context(x, n, box):
    try:
        try:
            fail(n)
        except Problem as error:
            raise ValueError("outer") from error
    except ValueError as error:
        a = type(error.__cause__), error.__cause__ is error.__context__, error.__suppress_context__
    try:
        try:
            fail(n)
        except Problem:
            raise ValueError from None
    except ValueError as error:
        return a, error.__cause__, type(error.__context__), error.__suppress_context__, x + 1


@program
def context_is_what_was_being_handled(x, n, box):
    found = []
    try:
        try:
            fail(n)
        except Problem:
            {}["missing"]
    except KeyError as error:
        found.append(
            (
                error.args,
                type(error.__context__),
                error.__context__.args,
                error.__suppress_context__,
            )
        )
    try:
        try:
            raise IndexError
        finally:
            fail(n)
    except Problem as error:
        found.append((type(error.__context__), error.__context__.__context__))
    return found, x * 2


@program
def an_exception_that_leaves_is_chained(x, n, box):
    y = x + 1
    try:
        fail(n)
    except Problem as error:
        raise LookupError(n) from error
    return y


@program
def bare_raise_is_the_same_object(x, n, box):
    seen = []
    try:
        try:
            fail(n)
        except Problem as error:
            seen.append(error)
            raise
    except Problem as error:
        return seen[0] is error, error.__context__, x + n


@program
def bare_raise_in_a_called_function_and_outside_a_handler(x, n, box):
    def again():
        raise

    try:
        try:
            fail(n)
        except Problem:
            again()
    except Problem as error:
        box.log.append(error.code)
    try:
        again()
    except RuntimeError as error:
        return str(error), x + 1


@program
def notes_are_added(x, n, box):
    try:
        try:
            fail(n)
        except Problem as error:
            error.add_note("first")
            error.add_note(f"n is {n}")
            raise
    except Problem as error:
        return error.__notes__, x + 1


@program
def try_return_finally_runs_in_order(x, n, box):
    def inner():
        try:
            box.log.append("try")
            return box.log.append("value") or x * n
        except Problem:
            box.log.append("never")
        else:
            box.log.append("never else")
        finally:
            box.log.append("finally")

    return inner(), box.log


@program
def finally_return_swallows_and_overrides(x, n, box):
    def swallow():
        try:
            fail(n)
        finally:
            return "swallowed"

    def override():
        for i in range(3):
            try:
                return i
            finally:
                if i < 2:
                    continue
                return x

    return swallow(), override()


@program
def else_runs_only_without_an_exception(x, n, box):
    for i in range(n):
        try:
            fail(i % 2)
        except Problem:
            box.log.append("except")
        else:
            box.log.append("else")
            x = x + 1
        finally:
            box.log.append(i)
    return x


@program
def an_exception_in_else_is_not_caught_there(x, n, box):
    try:
        try:
            pass
        except Problem:
            box.log.append("wrong")
        else:
            fail(n)
    except Problem as error:
        return error.code * x


@program
def handlers_match_by_tuple_base_and_order(x, n, box):
    for kind in (Worse, Problem, KeyError, LookupError, ValueError):
        try:
            raise kind(n)
        except (ValueError, Worse) as error:
            box.log.append(("tuple", type(error)))
        except Problem:
            box.log.append("problem")
        except KeyError:
            box.log.append("key")
        except Exception as error:
            box.log.append(("rest", type(error)))
    return x + 1


@program
def the_name_is_deleted_after_the_handler(x, n, box):
    error = n
    try:
        fail(n)
    except Problem as error:
        box.log.append(error.code)
    try:
        return error
    except UnboundLocalError as unbound:
        return str(unbound), x + 1


@program
def a_handler_that_catches_no_class_is_an_error(x, n, box):
    try:
        try:
            fail(n)
        except n:
            pass
    except TypeError as error:
        return str(error), type(error.__context__), x + 1


@program
def raising_what_is_no_exception(x, n, box):
    for wrong in (1, "text", int, None):
        try:
            raise wrong
        except TypeError as error:
            box.log.append(str(error))
    try:
        raise Problem(n) from 3
    except TypeError as error:
        return str(error), x + 1


@program(breaks="exception-object")
def groups_are_caught_by_star_handlers(x, n, box):
    try:
        raise ExceptionGroup(
            "many", [ValueError(1), KeyError(n), ExceptionGroup("in", [ValueError(2), TypeError()])]
        )
    except* ValueError as group:
        box.log.append([str(e) for e in group.exceptions])
        x = x + 1
    except* KeyError as group:
        box.log.append(group.exceptions[0].args)
    except* TypeError:
        x = x * 2
    return x, len(box.log)


@program(breaks="exception-object")
def what_no_star_handler_takes_goes_on(x, n, box):
    try:
        try:
            raise ExceptionGroup("many", [ValueError(n), OSError("left")])
        except* ValueError as group:
            box.log.append(len(group.exceptions))
    except ExceptionGroup as rest:
        return rest.message, [type(e) for e in rest.exceptions], x + 1


@program(breaks="exception-object")
def a_naked_exception_in_a_star_handler_is_wrapped(x, n, box):
    try:
        fail(n)
    except* Problem as group:
        box.log.append((type(group), group.message, group.exceptions[0].code))
    else:
        box.log.append("else")
    finally:
        box.log.append("finally")
    return x * n


@program(breaks="exception-object")
def raising_inside_a_star_handler_makes_a_group(x, n, box):
    try:
        try:
            raise ExceptionGroup("many", [ValueError(n), KeyError("k")])
        except* ValueError:
            raise IndexError("new")
        except* KeyError:
            raise
    except ExceptionGroup as group:
        return sorted(type(e).__name__ for e in group.exceptions), x + 1


@program(breaks="builtin")
def groups_split_and_subgroup(x, n, box):
    group = ExceptionGroup("g", [ValueError(n), ExceptionGroup("h", [KeyError(1)])])
    match, rest = group.split(KeyError)
    return (
        match.exceptions[0].message,
        rest.exceptions[0].args,
        group.subgroup(ValueError).message,
        x + 1,
    )


@program(breaks="exception-object")
def traceback_lines_are_the_users(x, n, box):
    try:
        fail(n)
    except Problem as error:
        lines = [entry.lineno for entry in traceback.extract_tb(error.__traceback__)]
        names = [entry.name for entry in traceback.extract_tb(error.__traceback__)]
        return names[-1], lines[-1] - fail.__code__.co_firstlineno, x + 1


@program
def sys_exc_info_during_and_after(x, n, box):
    try:
        fail(n)
    except Problem as error:
        inside = sys.exc_info()[1] is error, sys.exc_info()[0], sys.exception() is error
    return inside, sys.exc_info(), x + 1


@program
def sys_exception_during_and_after(x, n, box):
    found = [sys.exception()]
    try:
        fail(n)
    except Problem as error:
        found.append(sys.exception() is error)
        try:
            fail(n, Worse)
        except Worse as worse:
            found.append(sys.exception() is worse)
        found.append(sys.exception() is error)
    return found, sys.exception(), x + 1


@program
def sys_exception_inside_a_generator(x, n, box):
    def steps():
        yield sys.exception()
        try:
            fail(n)
        except Problem as own:
            yield sys.exception() is own
        yield sys.exception()

    going, found = steps(), []
    found.append(next(going))
    try:
        {}["a"]
    except KeyError as error:
        found += [next(going), sys.exception() is error, next(going) is error]
    return found, x + 1


@program
def sys_exception_in_an_exit_stack(x, n, box):
    found = []
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: found.append(type(sys.exception())))
        stack.push(lambda *details: found.append(details[0]) or True)
        stack.callback(lambda: found.append(type(sys.exception())))
        fail(n)
    return found, sys.exception(), x + 1


@program(breaks="operator-error")
def operator_errors_meet_the_handlers(x, n, box):
    found = []
    attempts = {
        "shape": lambda: x @ x.new_ones(7, 7),
        "cat": lambda: torch.cat([x, torch.ones(1, 1, 1)]),
        "index": lambda: x[n + 10],
        "view": lambda: x.view(7, 7),
        "type": lambda: torch.add(x, "text"),
        "keyword": lambda: torch.sum(x, nothing=1),
    }
    for name, attempt in attempts.items():
        try:
            attempt()
        except (RuntimeError, IndexError, TypeError) as error:
            found.append((name, type(error), str(error).partition("\n")[0]))
    return found, x + len(found)


@program(breaks="operator-error")
def an_operator_error_leaves_with_effects_before_it(x, n, box):
    box.log.append(n)
    y = x * 2
    box.tensor.add_(1)
    return y @ torch.ones(n + 5, 2)


@program(breaks="bad-arguments operator-error")
def errors_of_builtins_have_pythons_words(x, n, box):
    attempts = [
        lambda: [1, 2][n + 5],
        lambda: {"a": 1}[n],
        lambda: (1).missing,
        lambda: n / 0,
        lambda: n % 0,
        lambda: "a" + n,
        lambda: n + "a",
        lambda: int("z"),
        lambda: [].pop(),
        lambda: {}.popitem(),
        lambda: [1].index(n),
        lambda: [1].remove(n),
        lambda: len(n),
        lambda: n(),
        lambda: n[0],
        lambda: fail(),
        lambda: fail(1, 2, 3),
        lambda: fail(m=1),
        lambda: set().pop(),
        lambda: "abc".index("z"),
        lambda: {[]: 1},
        lambda: chr(-1),
        lambda: max([]),
        lambda: (lambda a, *, b: 0)(1),
        lambda: "%d" % "a",
        lambda: undefined_name,
        lambda: object().x,
        lambda: setattr(object(), "x", 1),
        lambda: range(1)[n],
        lambda: [1, 2].insert(1),
        lambda: isinstance(1, 2),
        lambda: 1 < "a",
        lambda: -[],
        lambda: Problem.nothing,
        lambda: sys.nothing,
    ]
    for attempt in attempts:
        try:
            box.log.append(attempt())
        except Exception as error:
            box.log.append((type(error), str(error)))
    return x + 1


@program
def an_exception_is_kept_and_raised_later(x, n, box):
    kept = []
    for i in range(2):
        try:
            fail(n + i)
        except Problem as error:
            kept.append(error)
    try:
        raise kept[1] from kept[0]
    except Problem as error:
        return error.code, error.__cause__.code, x * n


@program
def equality_and_instances_of_exceptions(x, n, box):
    a, b = ValueError(n), ValueError(n)
    return (
        a == b,
        a == a,
        a.args == b.args,
        repr(a),
        ValueError("a", 1).args,
        str(KeyError("k")),
        x + 1,
    )


@program
def assertion_errors_carry_their_message(x, n, box):
    try:
        assert n > 10, f"n is {n}"
    except AssertionError as error:
        box.log.append(error.args)
    assert x.dim() == 2
    try:
        assert not box.items
    except AssertionError as error:
        return error.args, x + 1


@program(breaks="c-attribute-write")
def with_traceback_and_set_state(x, n, box):
    error = Problem(n)
    same = error.with_traceback(None) is error
    error.args = (1, 2)
    error.extra = x
    return same, error.args, error.__traceback__, error


@program(breaks="construction")
def stop_iteration_and_key_error_details(x, n, box):
    stop = StopIteration(n, 2)
    key = KeyError("a")
    system = SystemExit(3)
    unicode = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad")
    file = FileNotFoundError(2, "No such", "name")
    return (
        stop.value,
        str(key),
        system.code,
        unicode.reason,
        file.errno,
        file.filename,
        str(file),
        x + 1,
    )
