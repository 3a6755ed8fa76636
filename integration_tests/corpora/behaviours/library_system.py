"""The library: math, cmath, random, re, string, inspect, abc, weakref, contextvars, os.environ,
time, typing, types, threading, and what is refused cleanly (async)."""

# mypy: ignore-errors

from __future__ import annotations

import asyncio
import cmath
import contextvars
import datetime
import inspect
import json
import math
import os
import pathlib
import re
import string
import struct
import textwrap
import threading
import time
import types
import typing
import uuid
import weakref

from integration_tests.corpora.behaviours import program

PATTERN = re.compile(r"(?P<word>[a-z]+)(\d*)")
VARIABLE = contextvars.ContextVar("variable", default="default")
LOCAL = threading.local()
LOCK = threading.Lock()


class Thing:
    def __init__(self, value=0):
        self.value = value

    def method(self, a, *rest, key: int = 3, **more) -> str:
        return "m"


THING = Thing()
REFERENCE = weakref.ref(THING)
CACHE = weakref.WeakKeyDictionary()
VALUES = weakref.WeakValueDictionary()


@program(breaks="builtin")
def math_on_numbers(x, n, box):
    return (
        math.sin(n), math.hypot(3, n), math.atan2(1, n), math.fsum([0.1] * n), math.modf(n / 2), math.frexp(n), math.ldexp(1.0, n), math.copysign(n, -0.0), math.isqrt(n * 7), math.lcm(4, n),
        math.dist([0, 0], [n, 1]), math.degrees(n), math.isnan(n), math.isinf(math.inf), math.fmod(-7, n), math.remainder(7, n), math.perm(5, 2), math.gamma(n), math.erf(n), math.log(n, 2), math.log1p(n), math.tau, x * math.cos(n),
    )  # fmt: skip


@program(breaks="operator-error")
def math_errors(x, n, box):
    for bad in (
        lambda: math.sqrt(-n),
        lambda: math.log(0),
        lambda: math.factorial(-1),
        lambda: math.exp(10000),
        lambda: math.sqrt("a"),
        lambda: math.gcd(1.5),
        lambda: math.floor(float("nan")),
    ):
        try:
            bad()
        except (ValueError, OverflowError, TypeError) as error:
            box.log.append((type(error), str(error)))
    return x + 1


@program
def complex_math(x, n, box):
    return (
        cmath.sqrt(-n),
        cmath.exp(1j * n),
        cmath.phase(-1),
        cmath.polar(1j),
        cmath.isnan(n),
        cmath.rect(1, n),
        x + 1,
    )


@program(breaks="builtin")
def regular_expressions_on_constants(x, n, box):
    match = PATTERN.match("abc123")
    return (
        match.group("word"),
        match.groups(),
        match.span(),
        re.sub(r"\d", "#", f"a{n}b"),
        re.split(r",\s*", "a, b,c"),
        re.findall(r"\w", "a-b"),
        bool(re.fullmatch("a+", "aab")),
        re.compile("x").search("axb").start(),
        re.escape("a.b"),
        PATTERN.pattern,
        x + 1,
    )


@program
def regular_expressions_with_functions(x, n, box):
    return (
        re.sub("[a-c]", lambda m: m.group().upper() * n, "abcd"),
        [m.group() for m in re.finditer(r"\d", "1a2")],
        re.match("no", "yes"),
        x + 1,
    )


@program(breaks="builtin")
def string_constants_and_templates(x, n, box):
    return (
        string.ascii_lowercase[:n],
        string.Template("$a is ${b}").substitute(a=1, b=n),
        string.capwords("a b"),
        string.Formatter().format("{0}", n),
        textwrap.dedent("  a\n  b"),
        x + 1,
    )


@program
def signatures(x, n, box):
    signature = inspect.signature(Thing.method)
    bound = inspect.signature(THING.method).bind(1, 2, key=n)
    bound.apply_defaults()
    return (
        list(signature.parameters),
        str(signature),
        signature.parameters["key"].default,
        bound.arguments["key"],
        bound.args,
        inspect.isfunction(Thing.method),
        inspect.ismethod(THING.method),
        inspect.isclass(Thing),
        inspect.getdoc(Thing),
        x + 1,
    )


@program
def weak_references(x, n, box):
    thing = Thing(n)
    reference = weakref.ref(thing)
    return (
        reference() is thing,
        REFERENCE() is THING,
        REFERENCE().value,
        reference().value,
        isinstance(reference, weakref.ref),
        weakref.ref(THING) is REFERENCE,
        x + 1,
    )


@program(breaks="builtin")
def weak_containers(x, n, box):
    CACHE[THING] = n
    VALUES["thing"] = THING
    return (
        CACHE[THING],
        THING in CACHE,
        len(CACHE),
        VALUES["thing"] is THING,
        VALUES.get("none"),
        list(VALUES),
        x + 1,
    )


@program(breaks="builtin")
def weak_sets_and_proxies(x, n, box):
    group = weakref.WeakSet([THING])
    proxy = weakref.proxy(THING)
    THING.value = n
    return len(group), THING in group, proxy.value, x + 1


PROXY = weakref.proxy(THING)


@program(breaks="c-attribute")
def a_proxy_is_an_instance_of_what_its_object_is(x, n, box):
    return (
        isinstance(PROXY, Thing),
        isinstance(PROXY, int | Thing),
        isinstance(PROXY, weakref.ProxyType),
        x + n,
    )


@program(breaks="c-attribute")
def a_proxy_says_of_what_class_it_is(x, n, box):
    return PROXY.__class__ is Thing, type(PROXY) is Thing, issubclass(PROXY.__class__, Thing), x + n


@program(breaks="c-attribute")
def a_proxy_is_matched_as_its_object(x, n, box):
    match PROXY:
        case int() | str():
            return "no", x + n
        case Thing():
            return "a thing", x + n


@program(breaks="construction")
def finalizers_and_dead_references(x, n, box):
    thing = Thing(n)
    reference = weakref.ref(thing, lambda r: box.log.append("gone"))
    del thing
    return reference(), box.log, x + 1


class Closing:
    def __init__(self, log, name):
        self.log, self.name = log, name

    def __del__(self):
        self.log.append(("closed", self.name))


@program(breaks="construction")
def finalizers_run_when_the_last_name_is_gone(x, n, box):
    first = Closing(box.log, "first")
    second = other = Closing(box.log, "second")
    del first
    box.log.append("deleted")
    second = None
    box.log.append("one name left")
    other = x
    box.log.append("bound again")
    return other + n


@program(breaks="construction")
def finalizers_run_when_a_function_returns(x, n, box):
    def inside(k):
        closing = Closing(box.log, k)
        box.log.append("inside")
        return k

    total = sum(inside(k) for k in range(2)) + inside(n)
    box.log.append("after")
    Closing(box.log, "at once")
    return total, x + 1


@program(breaks="construction")
def weak_references_to_what_a_function_made(x, n, box):
    def make():
        thing = Thing(n)
        return weakref.ref(thing, lambda r: box.log.append("gone")), thing.value

    reference, value = make()
    return reference() is None, value, len(box.log), x + 1


@program(breaks="builtin")
def context_variables(x, n, box):
    before = VARIABLE.get()
    token = VARIABLE.set(n)
    inside = VARIABLE.get()
    VARIABLE.reset(token)
    return before, inside, VARIABLE.get(), VARIABLE.get("other"), x * inside, VARIABLE.name


@program(breaks="builtin")
def a_context_is_copied_and_run(x, n, box):
    context = contextvars.copy_context()
    context.run(VARIABLE.set, n)
    return context[VARIABLE], VARIABLE.get(), x + 1


@program(breaks="builtin")
def the_environment(x, n, box):
    os.environ["STATOR_BEHAVIOUR"] = str(n)
    found = (
        os.environ["STATOR_BEHAVIOUR"],
        os.environ.get("STATOR_NOTHING", "none"),
        os.getenv("STATOR_BEHAVIOUR"),
        "STATOR_BEHAVIOUR" in os.environ,
    )
    del os.environ["STATOR_BEHAVIOUR"]
    return found, os.environ.get("STATOR_BEHAVIOUR"), x + 1


@program(breaks="builtin")
def time_goes_on(x, n, box):
    start = time.perf_counter()
    time.sleep(0)
    y = x + 1
    return (
        time.perf_counter() >= start,
        time.time() > 1e9,
        time.monotonic() > 0,
        isinstance(time.time_ns(), int),
        y,
    )


@program(breaks="construction")
def dates(x, n, box):
    day = datetime.date(2020, 1, n) + datetime.timedelta(days=n)
    return (
        day,
        day.isoformat(),
        datetime.timedelta(hours=n).total_seconds(),
        datetime.datetime(2020, 1, 1, n).hour,
        x + 1,
    )


@program(breaks="builtin")
def typing_functions(x, n, box):
    value = typing.cast(int, n)
    return (
        value,
        typing.get_type_hints(Thing.method),
        typing.get_origin(list[int]),
        typing.get_args(dict[str, int]),
        typing.Optional[int] == (int | None),
        list[int],
        typing.Any,
        typing.TYPE_CHECKING,
        x + 1,
    )


@program
def types_of_the_types_module(x, n, box):
    proxy = types.MappingProxyType(box.table)
    bound = types.MethodType(lambda self, k: (self, k), n)
    try:
        proxy["a"] = 1
    except TypeError as error:
        box.log.append(str(error))
    return (
        proxy["a"],
        dict(proxy),
        bound(2),
        types.new_class("Made", (Thing,)).__name__,
        isinstance(bound, types.MethodType),
        types.NoneType,
        x + 1,
    )


@program(breaks="builtin")
def threads_locals_and_locks(x, n, box):
    LOCAL.value = n
    with LOCK:
        y = x * LOCAL.value
    lock = threading.RLock()
    with lock:
        y = y + 1
    return (
        y,
        LOCAL.value,
        hasattr(LOCAL, "none"),
        LOCK.locked(),
        threading.current_thread() is threading.main_thread(),
    )


@program(breaks="construction")
def files_json_and_struct(x, n, box):
    text = json.dumps({"n": n, "items": box.items})
    return (
        json.loads(text),
        pathlib.PurePosixPath("a") / "b",
        os.path.join("a", "b"),
        struct.pack("<i", n),
        struct.unpack("<i", b"\x01\0\0\0"),
        str(uuid.UUID(int=n)),
        x + 1,
    )


async def coroutine(y):
    return y + 1


@program(breaks="construction")
def a_coroutine_is_run_by_a_loop(x, n, box):
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(coroutine(x))
    finally:
        loop.close()


@program(breaks="async")
def a_coroutine_is_driven_by_hand(x, n, box):
    made = coroutine(x)
    try:
        made.send(None)
    except StopIteration as stop:
        return stop.value, inspect.iscoroutinefunction(coroutine)


@program(breaks="async")
def an_asynchronous_generator_is_made_and_closed(x, n, box):
    async def parts():
        yield x

    made = parts()
    step = made.__anext__()
    try:
        step.send(None)
    except StopIteration as stop:
        return stop.value, inspect.isasyncgen(made)


@program(breaks="builtin")
def exec_eval_and_compile(x, n, box):
    space = {"n": n}
    exec("m = n * 2", space)
    return eval("1 + n"), space["m"], eval("y + 1", {"y": x}), len(globals()) > 3


@program(breaks="builtin")
def frames_and_the_garbage_collector(x, n, box):
    import gc
    import sys

    gc.collect(0)
    return (
        sys._getframe().f_code.co_name,
        sys.getrefcount(box) > 1,
        sys.maxsize,
        sys.version_info >= (3, 11),
        x + 1,
    )


class OfThread(threading.local):
    level = 1
    started = 0

    def __init__(self):
        self.started = 2

    def both(self):
        return self.level + self.started


OF_THREAD = OfThread()


@program
def attributes_of_a_thread_are_before_those_of_its_class(x, n, box):
    before = OF_THREAD.level, OF_THREAD.both(), OF_THREAD.started, hasattr(OF_THREAD, "made")
    OF_THREAD.level = n
    OF_THREAD.made = x + n
    after = OF_THREAD.level, OF_THREAD.both(), OF_THREAD.made, sorted(vars(OF_THREAD))
    del OF_THREAD.made
    return before, after, hasattr(OF_THREAD, "made")
