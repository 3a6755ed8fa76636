"""Closures: late binding, default capture, recursion, decorators with and without arguments,
`functools` wrappers; cells shared between nested functions, made outside, made inside, and
escaping."""

# mypy: ignore-errors

from __future__ import annotations

import functools
import sys

import torch

from integration_tests.corpora.behaviours import program


@program
def nonlocal_is_shared_by_two_functions_and_the_caller(x, n, box):
    total = n

    def add(k):
        nonlocal total
        total += k
        return total

    def read():
        return total

    add(2)
    seen = read()
    total *= 10
    return seen, read(), add(1), total, x * total


@program(breaks="function-attribute")
def late_binding_and_default_capture(x, n, box):
    late = [lambda: i for i in range(n)]
    early = [lambda i=i: i for i in range(n)]
    fns = []
    for k in range(2):

        def inner(y, k=k, *, scale=n):
            return y * k + scale

        fns.append(inner)
    k = 100
    return (
        [f() for f in late],
        [f() for f in early],
        [f(x) for f in fns],
        fns[0].__defaults__,
        fns[1].__kwdefaults__,
    )


@program
def a_closure_escapes_and_lives_on(x, n, box):
    count = 0

    def step(y):
        nonlocal count
        count += 1
        return y + count

    first = step(x)
    box.log.append(step)
    return (
        first,
        step(x),
        [f(x) for f in box.log],
        step.__closure__[0].cell_contents,
        step.__code__.co_freevars,
    )


def counter(start):
    value = start

    def increase(by=1):
        nonlocal value
        value += by
        return value

    def peek():
        return value

    return increase, peek


INCREASE, PEEK = counter(10)


@program
def a_closure_made_outside_is_called(x, n, box):
    before = PEEK()
    INCREASE(n)
    return before, PEEK(), INCREASE(), x * PEEK()


@program
def cells_of_an_outside_closure_are_written(x, n, box):
    cell = INCREASE.__closure__[0]
    cell.cell_contents = n * 100
    return PEEK(), cell.cell_contents, x + 1


@program
def recursion_direct_and_mutual(x, n, box):
    def even(k):
        return True if k == 0 else odd(k - 1)

    def odd(k):
        return False if k == 0 else even(k - 1)

    def depth(k, y):
        return y if k == 0 else depth(k - 1, y * 2)

    return even(n), odd(n), depth(n, x)


@program
def an_unbound_free_variable(x, n, box):
    def early():
        return late

    try:
        early()
    except NameError as error:
        box.log.append((type(error), str(error)))
    late = n
    found = early()
    del late
    try:
        early()
    except NameError as error:
        return str(error), found, x + 1


def plain(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs) + 1

    return wrapper


def scaled(factor, *, twice=False):
    def decorate(fn):
        @functools.wraps(fn)
        def wrapper(*args):
            return fn(*args) * factor * (2 if twice else 1)

        return wrapper

    return decorate


@plain
@scaled(3, twice=True)
def decorated(y, k=1):
    """Documented."""
    return y + k


@program
def decorators_with_and_without_arguments(x, n, box):
    @scaled(n)
    @plain
    def inner(y):
        return y * 2

    return (
        decorated(x),
        decorated(x, n),
        inner(x),
        decorated.__name__,
        decorated.__doc__,
        inner.__wrapped__.__name__,
        inner.__qualname__,
    )


class Registering:
    def __init__(self, fn):
        functools.update_wrapper(self, fn)
        self.fn, self.calls = fn, 0

    def __call__(self, *args):
        self.calls += 1
        return self.fn(*args)


@Registering
def registered(y):
    return y * 2


@program
def a_class_as_a_decorator_counts(x, n, box):
    registered(x)
    return registered(x), registered.calls, registered.__name__


@program
def partials_nest_and_show_their_parts(x, n, box):
    p = functools.partial(decorated, k=n)
    q = functools.partial(p, x)
    return p(x), q(), q.args, q.keywords, q.func is decorated, functools.partial(max, 3)(1, n)


class WithPartial:
    def __init__(self, k):
        self.k = k

    def scale(self, factor, y):
        return y * factor * self.k

    double = functools.partialmethod(scale, 2)

    @functools.cached_property
    def heavy(self):
        self.k += 1
        return self.k * 10

    @functools.singledispatchmethod
    def show(self, value):
        return "any"

    @show.register
    def _(self, value: int):
        return "int"


@program
def partial_methods_and_cached_properties(x, n, box):
    made = WithPartial(n)
    return made.double(x), made.heavy, made.heavy, made.k, "heavy" in made.__dict__


# of a weak dict of what was found
@program(breaks=None if sys.version_info < (3, 13) else "construction")
def single_dispatch_methods(x, n, box):
    made = WithPartial(n)
    return made.show(1), made.show("a"), made.show(True), x + 1


@functools.lru_cache(maxsize=2)
def cached(n):
    CALLS.append(n)
    return n * 2


@functools.cache
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


CALLS = []


@program
def cached_functions_run_once_per_argument(x, n, box):
    return cached(n), cached(n), len(CALLS), fibonacci(n + 5), x * cached(n)


@program(breaks="builtin")
def cache_management(x, n, box):
    cached.cache_clear()
    cached(1)
    cached(n)
    return cached.cache_info(), cached.__wrapped__(3), cached.cache_parameters(), x + 1


@program(breaks="builtin")
def the_least_recently_used_result_is_thrown_out(x, n, box):
    cached.cache_info()
    found = [cached(k) for k in (n, n + 1, n, n + 2, n, n + 1)]
    return found, len(CALLS), cached.cache_info(), x + 1


@program(breaks="builtin")
def counts_of_a_cache(x, n, box):
    a = cached.cache_info()
    b = cached(1), cached(1), cached.cache_info()
    return a, b, cached(1), cached(n=1), cached.cache_info(), x + 1


SETTINGS = {"base": 1}


@functools.lru_cache
def from_settings(n):
    CALLS.append("settings")
    return [SETTINGS["base"], n]


@program(breaks="cached-function")
def a_cached_result_is_of_the_time_when_it_was_computed(x, n, box):
    SETTINGS["base"] += 10
    found = from_settings(n)
    SETTINGS["base"] += 1
    found.append(n)
    return found is from_settings(n), found, x + len(found)


@functools.lru_cache
def refusing(n):
    CALLS.append("refused")
    raise ValueError(n)


@program(breaks="cached-function")
def an_error_is_not_kept(x, n, box):
    for _ in range(2):
        try:
            box.log.append(n)
            refusing(n)
        except ValueError as error:
            box.log.append(error.args)
    return x + 1


class Counting:
    def __init__(self, base):
        self.base = base

    @functools.lru_cache(maxsize=2)
    def plus(self, n, *, more=0):
        CALLS.append(self.base)
        return self.base + n + more


COUNTING = Counting(5)


@program
def cached_methods(x, n, box):
    return COUNTING.plus(n), COUNTING.plus(n, more=1), COUNTING.plus(n), x + COUNTING.plus(1)


@program(breaks="cached-function")
def cached_methods_of_new_objects(x, n, box):
    mine = Counting(n)
    return mine.plus(1), mine.plus(1), x + 1


@functools.lru_cache(typed=True)
def typed(a, b=2.0):
    CALLS.append((a, b))
    return type(a)


@program
def types_may_be_part_of_the_key(x, n, box):
    return (
        typed(1),
        typed(1.0),
        typed(True),
        typed(1, b=2),
        typed(1, b=2.0),
        typed((1, "a")),
        x.sum() * len(CALLS),
    )


@functools.cache
def of_a_shape(shape, *parts):
    CALLS.append(shape)
    return torch.ones(shape)


@program
def caches_keyed_by_shapes(x, n, box):
    made = of_a_shape(x.shape)
    return made is of_a_shape(x.shape), of_a_shape((n, 2), "a").sum(), x * made


@functools.cache
def unhashable(thing):
    return 1


@program
def a_key_must_be_hashable(x, n, box):
    try:
        unhashable([n])
    except TypeError as error:
        box.log.append(str(error))
    return x + 1


@functools.singledispatch
def dispatch(value, y):
    return "object"


@dispatch.register
def _(value: int, y):
    return y * value


@dispatch.register(list)
def _(value, y):
    return [dispatch(v, y) for v in value]


@program
def single_dispatch_by_type(x, n, box):
    return (
        dispatch(n, x),
        dispatch([1, "a"], x),
        dispatch(1.5, x),
        dispatch(True, x),
        dispatch.dispatch(bool) is dispatch.dispatch(int),
    )


@program
def reduce_with_and_without_start(x, n, box):
    found = (
        functools.reduce(lambda a, b: a * b, range(1, n + 2)),
        functools.reduce(lambda a, b: a + b, [x, x], x),
    )
    try:
        functools.reduce(lambda a, b: a, [])
    except TypeError as error:
        return found, str(error)


def defaults(item, into=[], *, seen={}):
    into.append(item)
    seen[item] = len(into)
    return len(into)


@program
def mutable_defaults_are_shared_by_calls(x, n, box):
    defaults(n)
    return (
        defaults(n + 1),
        list(defaults.__defaults__[0]),
        dict(defaults.__kwdefaults__["seen"]),
        x + 1,
    )


@program
def a_default_of_an_inner_function_is_one_object(x, n, box):
    def collect(item, into=[]):
        into.append(item)
        return into

    one, two = collect(1), collect(n)
    return one is two, two, collect.__defaults__, x + 1


@program
def functions_have_attributes(x, n, box):
    def inner():
        return inner.count

    inner.count = n
    inner.__name__ = "renamed"
    inner.__doc__ = "doc"
    got = (
        inner(),
        inner.__name__,
        inner.__doc__,
        inner.__module__,
        inner.__dict__,
        hasattr(inner, "nothing"),
    )
    del inner.count
    return got, hasattr(inner, "count"), x + 1


def marked(y):
    return y


@program
def attributes_of_an_outside_function_are_written(x, n, box):
    marked.uses = getattr(marked, "uses", 0) + n
    return marked.uses, x * marked.uses


@program(breaks="c-attribute-write")
def defaults_of_a_function_are_replaced(x, n, box):
    def inner(a=1, *, b=2):
        return a, b

    inner.__defaults__ = (n,)
    inner.__kwdefaults__ = {"b": x}
    return inner()


@program
def a_closure_over_a_loop_and_a_comprehension(x, n, box):
    fns = [[(lambda: (i, j)) for j in range(2)] for i in range(2)]
    return [[f() for f in row] for row in fns], x + n


@program
def class_cell_and_locals(x, n, box):
    a, b = n, x

    def inner():
        c = a
        return sorted(locals()), c

    return inner(), sorted(locals())
