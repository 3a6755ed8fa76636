"""Generators: lazily run, returned as generators, `send`, `throw`, `close`, `yield from`,
`StopIteration.value`; one over a list that grows under it; one alive across a break; one passed in,
half consumed."""

# mypy: ignore-errors

from __future__ import annotations

import inspect
import itertools
import types

from integration_tests.corpora.behaviours import program


def parts(x, log, stop=3):
    log.append("start")
    try:
        for i in range(stop):
            got = yield x + i
            log.append((i, got))
    except ValueError as error:
        log.append(error.args)
        yield "recovered"
    finally:
        log.append("end")
    return stop


@program
def nothing_runs_before_the_first_next(x, n, box):
    gen = parts(x, box.log)
    before = list(box.log)
    first = next(gen)
    return before, list(box.log), first


@program(breaks="c-attribute")
def a_generator_is_returned_as_one(x, n, box):
    gen = parts(x, box.log, n)
    next(gen)
    box.gen = None
    return (
        type(gen) is types.GeneratorType,
        inspect.isgenerator(gen),
        gen.gi_frame is not None,
        list(gen),
    )


KEPT = []


@program(breaks="foreign-iterator")
def a_generator_escapes_and_is_resumed_by_later_calls(x, n, box):
    if not KEPT:
        KEPT.append(parts(x.detach(), [], 10))
    gen = KEPT[0]
    value = next(gen)
    return value * 2, n


@program
def the_caller_goes_on_with_a_half_consumed_generator(x, n, box):
    def consume(gen):
        return next(gen) + 1

    gen = parts(x, box.log)
    first = consume(gen)
    return first, [y * n for y in gen], list(gen)


@program
def send_gives_values_and_stop_iteration_has_the_result(x, n, box):
    gen = parts(x, box.log, 2)
    found = [next(gen), gen.send("one")]
    try:
        gen.send("two")
    except StopIteration as stop:
        found.append(stop.value)
    return found, box.log


@program
def send_of_a_value_to_an_unstarted_generator_is_an_error(x, n, box):
    gen = parts(x, box.log)
    try:
        gen.send(n)
    except TypeError as error:
        box.log.append(str(error))
    first = next(gen)
    gen.close()
    return first


@program
def throw_reaches_the_handler_inside(x, n, box):
    gen = parts(x, box.log)
    next(gen)
    found = gen.throw(ValueError("in", n))
    return found, next(gen, "done"), box.log


@program
def throw_of_a_class_with_a_value(x, n, box):
    gen = parts(x, box.log)
    next(gen)
    return gen.throw(ValueError(n)), list(gen), box.log


@program
def throw_into_a_finished_generator_raises_it(x, n, box):
    gen = parts(x, box.log, 0)
    found = list(gen)
    try:
        gen.throw(KeyError(n))
    except KeyError as error:
        return found, error.args, x + 1


@program(breaks="c-attribute")
def close_runs_the_finally_and_ends_it(x, n, box):
    gen = parts(x, box.log)
    y = next(gen)
    closed = gen.close()
    return y, closed, list(gen), box.log, gen.gi_frame


@program
def close_of_an_unstarted_generator_runs_nothing(x, n, box):
    gen = parts(x, box.log)
    gen.close()
    return next(gen, "nothing"), box.log, x + 1


def stubborn(x):
    try:
        yield x
    except GeneratorExit:
        yield "ignored"  # once: an object that dies unwillingly is reported to nobody in particular


@program
def a_generator_that_ignores_its_end_is_an_error(x, n, box):
    gen = stubborn(x)
    y = next(gen)
    try:
        gen.close()
    except RuntimeError as error:
        return y, str(error)


def delegating(x, log):
    result = yield from parts(x, log, 2)
    log.append(("result", result))
    other = yield from [x * 2, "list"]
    log.append(other)
    return (yield from iter(()))


@program
def yield_from_hands_on_send_throw_and_results(x, n, box):
    gen = delegating(x, box.log)
    found = [next(gen), gen.send("sent"), gen.throw(ValueError("v"))]
    return found, list(gen), box.log


@program
def yield_from_close_closes_the_inner_one(x, n, box):
    gen = delegating(x, box.log)
    next(gen)
    gen.close()
    return box.log, x + n


def countdown(n):
    if n:
        yield n
        yield from countdown(n - 1)


@program
def yield_from_itself(x, n, box):
    return [x * i for i in countdown(n)]


@program
def it_iterates_a_list_growing_under_it(x, n, box):
    def walk(items):
        for item in items:
            if item < 3:
                items.append(item + 2)
            yield item * x

    return list(walk(box.items)), box.items


@program
def an_expression_reads_its_first_iterable_at_once_and_the_rest_late(x, n, box):
    source, factor = [1, 2], 1
    gen = (x * i * factor * j for i in source for j in box.items)
    source = None
    factor = n
    box.items.append(10)
    return sum(gen), next(gen, "end")


@program
def two_that_feed_each_other(x, n, box):
    def evens(items):
        for i in items:
            if i % 2 == 0:
                box.log.append(("even", i))
                yield i

    def squares(items):
        for i in items:
            box.log.append(("square", i))
            yield i * i

    total = x
    for value in squares(evens(range(n + 2))):
        total = total + value
    return total, box.log


@program
def a_pipeline_with_islice_stops_in_time(x, n, box):
    def endless():
        i = 0
        while True:
            box.log.append(i)
            yield x * i
            i += 1

    return list(itertools.islice(endless(), n)), len(box.log)


@program
def stop_iteration_inside_becomes_a_runtime_error(x, n, box):
    def bad():
        yield x
        raise StopIteration(n)

    gen = bad()
    first = next(gen)
    try:
        next(gen)
    except RuntimeError as error:
        return first, str(error), type(error.__cause__), error.__cause__.value


@program
def an_error_inside_ends_it_for_good(x, n, box):
    def failing():
        yield x
        yield 1 // (n - n)

    gen = failing()
    first = next(gen)
    try:
        next(gen)
    except ZeroDivisionError as error:
        box.log.append(str(error))
    return first, list(gen), box.log


@program(breaks="c-attribute")
def running_state_is_seen_from_outside(x, n, box):
    states = []

    def watched():
        states.append(inspect.getgeneratorstate(gen))
        yield x

    gen = watched()
    states.append(inspect.getgeneratorstate(gen))
    next(gen)
    states.append(inspect.getgeneratorstate(gen))
    gen.close()
    states.append(inspect.getgeneratorstate(gen))
    return states


@program
def a_generator_that_resumes_itself_is_an_error(x, n, box):
    def twisted():
        yield x
        yield next(gen)

    gen = twisted()
    first = next(gen)
    try:
        next(gen)
    except ValueError as error:
        return first, str(error)


@program(breaks="builtin")
def alive_across_a_break(x, n, box):
    gen = parts(x, box.log)
    y = next(gen)
    print("between", n)
    z = gen.send(n)
    return y + z, list(gen), box.log


@program(breaks="generator-dropped")
def generators_in_containers_advance_in_turn(x, n, box):
    gens = {"a": parts(x, box.log), "b": parts(x * 2, box.log)}
    found = []
    for _ in range(2):
        for gen in gens.values():
            found.append(next(gen))
    del gens["a"]
    return found, list(gens["b"]), box.log


class Tree:
    def __init__(self, value, *children):
        self.value, self.children = value, children

    def __iter__(self):
        yield self.value
        for child in self.children:
            yield from child


@program
def a_method_that_is_a_generator(x, n, box):
    tree = Tree(1, Tree(n, Tree(3)), Tree(4))
    return [x * v for v in tree], max(tree), sum(tree), list(zip(tree, tree))


@program
def unpacking_and_star_arguments_consume_it(x, n, box):
    first, *rest = (x + i for i in range(3))
    return (
        first,
        rest,
        max(*(i * n for i in range(4))),
        [*parts(x, box.log), *countdown(2)],
        (*countdown(n),),
    )


OUTSIDE = iter(())


@program(breaks="foreign-iterator")
def one_passed_in_through_a_global_half_consumed(x, n, box):
    global OUTSIDE
    found = [y * 2 for y in OUTSIDE]
    OUTSIDE = (x.detach() * i for i in range(n))
    next(OUTSIDE)
    return found


@program(breaks="generator-dropped")
def a_generator_is_dropped_before_its_end(x, n, box):
    for y in parts(x, box.log):
        if len(box.log) > 1:
            break
    box.log.append("after")
    return y * n
