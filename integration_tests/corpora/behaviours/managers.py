"""User context managers and `contextlib`: exit called exactly once on return, raise, break,
continue, generator close; a swallowed exception; `ExitStack`; a mode open across a break leaves
nothing behind."""

# mypy: ignore-errors

from __future__ import annotations

import contextlib
import io

import torch

from integration_tests.corpora.behaviours import program


class Noted:
    def __init__(self, log, name="m", swallow=()):
        self.log, self.name, self.swallow = log, name, swallow

    def __enter__(self):
        self.log.append(("enter", self.name))
        return self

    def __exit__(self, kind, value, trace):
        self.log.append(("exit", self.name, kind, None if value is None else value.args))
        return kind is not None and issubclass(kind, self.swallow or ())


@contextlib.contextmanager
def scope(log, name="g", swallow=False):
    log.append(("enter", name))
    try:
        yield len(log)
    except ValueError as error:
        log.append(("caught", error.args))
        if not swallow:
            raise
    finally:
        log.append(("exit", name))


@program
def exit_is_called_once_on_return(x, n, box):
    def inner():
        with Noted(box.log), scope(box.log) as depth:
            return x * depth

    return inner(), box.log


@program
def exit_is_called_once_on_raise(x, n, box):
    try:
        with Noted(box.log, "outer"), Noted(box.log, "inner"):
            raise KeyError(n)
    except KeyError:
        return x + 1, box.log


@program
def exit_is_called_once_on_break_and_continue(x, n, box):
    for i in range(4):
        with Noted(box.log, i), scope(box.log, i):
            if i == 1:
                continue
            if i == n:
                break
            x = x + i
    return x, box.log


@program
def exit_is_called_on_generator_close(x, n, box):
    def parts():
        with Noted(box.log), scope(box.log):
            yield x
            yield x * n

    gen = parts()
    first = next(gen)
    gen.close()
    return first, box.log


@program
def a_swallowed_exception_goes_on_after_the_block(x, n, box):
    with Noted(box.log, swallow=(ValueError,)) as manager:
        x = x + 1
        raise ValueError(n)
    with scope(box.log, swallow=True):
        raise ValueError(n)
    with contextlib.suppress(KeyError, IndexError):
        x = x * 2
        [][n]
    return x, manager.name, box.log


@program(breaks="operator-error")
def nested_managers_see_what_the_inner_ones_leave(x, n, box):
    with Noted(box.log, "outer"):
        with Noted(box.log, "middle", swallow=(ZeroDivisionError,)):
            with Noted(box.log, "inner"):
                n / 0
            box.log.append("not here")
        box.log.append("here")
    return x + 1


class Failing(Noted):
    def __exit__(self, kind, value, trace):
        super().__exit__(kind, value, trace)
        raise LookupError("in exit")


@program
def an_exit_that_raises_replaces_and_chains(x, n, box):
    try:
        with Failing(box.log):
            raise ValueError(n)
    except LookupError as error:
        return type(error.__context__), error.__context__.args, x + 1


@program
def an_enter_that_raises_never_exits(x, n, box):
    class Refusing(Noted):
        def __enter__(self):
            raise ValueError("no entry")

    try:
        with Noted(box.log, "outer"), Refusing(box.log):
            box.log.append("never")
    except ValueError as error:
        return str(error), x + 1, box.log


@program
def what_is_no_manager_is_an_error(x, n, box):
    class Half:
        def __enter__(self):
            return 1

    for thing in (n, Half()):
        try:
            with thing:
                pass
        except TypeError as error:
            box.log.append(str(error))
    return x + 1


@program
def an_exit_stack_unwinds_in_reverse(x, n, box):
    with contextlib.ExitStack() as stack:
        for i in range(n):
            stack.enter_context(Noted(box.log, i))
        stack.callback(box.log.append, "callback")
        stack.push(lambda *error: box.log.append(("pushed", error[0])))
        x = x + 1
    return x, box.log


@program
def an_exit_stack_hands_over_with_pop_all(x, n, box):
    with contextlib.ExitStack() as stack:
        stack.enter_context(Noted(box.log, "kept"))
        kept = stack.pop_all()
    box.log.append("after")
    kept.close()
    return x * n, box.log


@program
def an_exit_stack_swallows(x, n, box):
    with contextlib.ExitStack() as stack:
        stack.enter_context(Noted(box.log, "swallow", swallow=(ValueError,)))
        stack.enter_context(scope(box.log))
        raise ValueError(n)
    return x + 1, box.log


@program
def closing_and_nullcontext(x, n, box):
    class Resource:
        def close(self):
            box.log.append("closed")

    with contextlib.closing(Resource()) as resource, contextlib.nullcontext(n) as given:
        x = x * given
    return x, type(resource).__name__, box.log


@program
def a_generator_manager_as_a_decorator(x, n, box):
    @scope(box.log, "decorated")
    def inner(y):
        return y + n

    return inner(x), inner(x * 2), box.log


@program
def a_class_manager_as_a_decorator(x, n, box):
    class Timed(contextlib.ContextDecorator):
        def __enter__(self):
            box.log.append("in")
            return self

        def __exit__(self, *error):
            box.log.append("out")
            return False

    @Timed()
    def inner(y):
        return y * n

    return inner(x), box.log


@program
def a_generator_manager_that_yields_twice_or_never(x, n, box):
    @contextlib.contextmanager
    def wrong(times):
        for _ in range(times):
            yield

    for times in (0, 2):
        try:
            with wrong(times):
                x = x + 1
        except RuntimeError as error:
            box.log.append(str(error))
    return x


@program
def a_generator_manager_with_a_return_value_and_state(x, n, box):
    @contextlib.contextmanager
    def changed(holder, value):
        before, holder.value = holder.value, value
        try:
            yield before
        finally:
            holder.value = before

    with changed(box, n) as before:
        during = box.value
        x = x * during
    return x, before, during, box.value


@program(breaks="builtin")
def a_generator_manager_is_open_across_a_break(x, n, box):
    with scope(box.log) as depth:
        y = x * depth
        print("inside", n)
        y = y + 1
    return y, box.log


@program(breaks="builtin")
def modes_are_open_across_a_break(x, n, box):
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        y = x * 2
        print(torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"))
        z = x @ x.T
    return y, z.dtype, torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")


@program(breaks="operator-error")
def an_error_inside_modes_restores_them(x, n, box):
    try:
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            x @ torch.ones(n + 7, 1)
    except RuntimeError:
        return torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), x * 2


@program
def set_grad_enabled_as_function_and_manager(x, n, box):
    before = torch.is_grad_enabled()
    with torch.set_grad_enabled(n == 3):
        inside = torch.is_grad_enabled()
        y = x * 2
    torch.set_grad_enabled(before)
    return before, inside, y.requires_grad, torch.is_grad_enabled()


@program
def a_with_target_may_be_any_target(x, n, box):
    pair = [None, None]
    with contextlib.nullcontext(n) as pair[0], contextlib.nullcontext((1, 2)) as (a, b):
        x = x + a
    with contextlib.nullcontext(x) as box.value:
        pass
    return pair, b, x


@program(breaks="construction")
def redirected_output_is_the_strings(x, n, box):
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        print("hello", n)
    return stream.getvalue(), x + 1


SHARED = Noted([], "shared")


@program
def a_manager_from_outside_is_reentered(x, n, box):
    with SHARED, SHARED:
        x = x + len(SHARED.log)
    return x, len(SHARED.log)


@program
def manager_methods_are_looked_up_on_the_class(x, n, box):
    manager = Noted(box.log)
    manager.__enter__ = lambda: "instance"
    with manager as entered:
        pass
    return entered is manager, x + 1
