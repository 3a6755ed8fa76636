"""The default dtype, default device, grad mode, autocast state or deterministic flag changes; an
error inside `with autocast` (or any mode) leaves the mode stack as plain Python leaves it."""

# mypy: ignore-errors

from __future__ import annotations

import contextlib

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import record_function

from integration_tests.corpora.behaviours import program


def modes():
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu"),
        torch.get_default_dtype(),
        torch.are_deterministic_algorithms_enabled(),
    )


@program
def no_grad_as_a_block(x, n, box):
    with torch.no_grad():
        y = x * n
    return y, y.requires_grad, x * 2, modes()


@program
def enable_grad_inside_no_grad(x, n, box):
    with torch.no_grad():
        with torch.enable_grad():
            y = x * n
        z = x * n
    return y.requires_grad, z.requires_grad, y, z


@torch.no_grad()
def quietly(x):
    return x * 2


@torch.enable_grad()
def loudly(x):
    return x * 3


@program
def decorated_functions(x, n, box):
    return quietly(x), loudly(x), quietly(x).requires_grad, modes()


@program
def a_function_decorated_here(x, n, box):
    @torch.no_grad()
    def inner(y):
        return y * n

    return inner(x), modes()


@program
def set_grad_enabled_as_a_function(x, n, box):
    torch.set_grad_enabled(n % 2 == 0)
    y = x * 2
    torch.set_grad_enabled(True)
    return y, y.requires_grad, modes()


@program
def a_mode_is_left_changed(x, n, box):
    torch.set_grad_enabled(False)
    return x * n


@program
def an_error_inside_no_grad(x, n, box):
    try:
        with torch.no_grad():
            raise KeyError(n)
    except KeyError as error:
        return error.args, (x * 2).requires_grad, modes()


@program(breaks="operator-error")
def an_operator_error_inside_no_grad(x, n, box):
    try:
        with torch.no_grad():
            x + torch.ones(17)
    except RuntimeError:
        return x * n, modes()


@program(breaks="operator-error")
def an_uncaught_error_inside_modes(x, n, box):
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        box.log.append(modes())
        x @ torch.ones(17, 2)


@program
def return_from_within_nested_modes(x, n, box):
    with torch.no_grad():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            if n > 2:
                return x @ x.T, modes()
        return x @ x.T, modes()


@program
def break_and_continue_leave_modes(x, n, box):
    for i in range(4):
        with torch.no_grad():
            if i == 0:
                continue
            if i == n:
                break
            x = x * 2
    return x, x.requires_grad, modes()


@program
def inference_mode_as_a_block(x, n, box):
    with torch.inference_mode():
        y = x * n
        inside = torch.is_inference_mode_enabled()
    return y.is_inference(), inside, y.requires_grad, modes()


@torch.inference_mode()
def inferred(x):
    return x + 1


@program
def inference_mode_as_a_decorator(x, n, box):
    y = inferred(x)
    return y.is_inference(), modes(), y.clone() * n


@program
def an_error_inside_inference_mode(x, n, box):
    try:
        with torch.inference_mode():
            raise ValueError("inside")
    except ValueError:
        return modes(), x * n


@program
def autocast_as_a_block(x, n, box):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.T
        inside = modes()
    return y, y.dtype, (x @ x.T).dtype, inside, modes()


@program
def autocast_nested_and_switched_off(x, n, box):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with torch.autocast("cpu", enabled=False):
            y = x.float() @ x.T.float()
        z = x @ x.T
    return y.dtype, z.dtype, z, modes()


@torch.autocast("cpu", dtype=torch.bfloat16)
def cast(x):
    return x @ x.T


@program
def autocast_as_a_decorator(x, n, box):
    return cast(x) * n, modes()


@program
def an_error_inside_autocast(x, n, box):
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x.T
            raise KeyError("inside")
    except KeyError:
        return y, x @ x.T, modes()


@program(breaks="operator-error")
def an_operator_error_inside_autocast(x, n, box):
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            x @ torch.ones(17, 17)
    except RuntimeError:
        return x @ x.T, modes()


@program
def an_unsupported_dtype_of_autocast_warns(x, n, box):
    with torch.autocast("cpu", dtype=torch.float16 if n > 2 else torch.bfloat16):
        return (x @ x.T).dtype


@program
def a_default_dtype_is_set(x, n, box):
    torch.set_default_dtype(torch.float64)
    y = torch.ones(2) * n
    torch.set_default_dtype(torch.float32)
    return y, torch.ones(2), torch.tensor(1.5).dtype, modes()


@program
def a_default_dtype_is_left_set(x, n, box):
    torch.set_default_dtype(torch.float64 if n % 2 else torch.float32)
    return torch.ones(2), x * n


@program
def a_default_device_is_set(x, n, box):
    torch.set_default_device("meta")
    y = torch.ones(2)
    torch.set_default_device(None)
    return y.device, torch.ones(2), x * n, modes()


@program
def deterministic_algorithms(x, n, box):
    torch.use_deterministic_algorithms(True)
    inside = torch.are_deterministic_algorithms_enabled()
    y = torch.zeros(3).index_add_(0, torch.tensor([0, 1]), torch.ones(2))
    torch.use_deterministic_algorithms(False)
    return inside, y * n, modes()


@program
def precision_settings(x, n, box):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    y = x @ x.T
    torch.set_float32_matmul_precision(before)
    return y, before, torch.get_float32_matmul_precision()


@program
def profiler_ranges(x, n, box):
    with record_function("outer"):
        y = x * n
        with torch.autograd.profiler.record_function("inner"):
            y = y + 1
    return y


@program(breaks="not-inlined")
def a_profiler_around_it(x, n, box):
    with (
        torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile,
        record_function("mine"),
    ):
        y = x * n
    return y, "mine" in [event.key for event in profile.key_averages()]


@program
def an_exit_stack_of_modes(x, n, box):
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        if n > 2:
            stack.enter_context(torch.autocast("cpu", dtype=torch.bfloat16))
        stack.callback(lambda: box.log.append(modes()))
        y = x @ x.T
    return y, y.requires_grad, box.log, modes()


@program
def an_exit_stack_with_an_error(x, n, box):
    try:
        with contextlib.ExitStack() as stack:
            for manager in (torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16)):
                stack.enter_context(manager)
            raise IndexError(n)
    except IndexError as error:
        return error.args, modes(), x * 2


@contextlib.contextmanager
def evaluating(log):
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    try:
        yield before
    finally:
        torch.set_grad_enabled(before)
        log.append("left")


@program
def a_manager_of_the_user(x, n, box):
    with evaluating(box.log) as before:
        y = x * n
    return y, before, box.log, modes()


@program
def a_manager_of_the_user_with_an_error(x, n, box):
    with contextlib.suppress(ValueError), evaluating(box.log):
        raise ValueError
    return x * n, box.log, modes()


class Switch:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.inner = torch.no_grad()
        self.inner.__enter__()
        return self

    def __exit__(self, *error):
        self.log.append(error[0])
        self.inner.__exit__(*error)
        return error[0] is KeyError


@program
def a_manager_that_swallows(x, n, box):
    with Switch(box.log):
        if n > 2:
            raise KeyError
        x = x * 2
    return x, box.log, modes()


@program
def a_manager_is_kept_and_used_twice(x, n, box):
    quiet = torch.no_grad()
    with quiet:
        y = x * n
    with quiet:
        z = x + n
    return y, z, modes()


@program
def a_manager_is_passed_on(x, n, box):
    def run(manager):
        with manager:
            return x * n

    return (
        run(torch.no_grad()),
        run(contextlib.nullcontext()),
        run(torch.set_grad_enabled(False)),
        modes(),
    )


@program
def a_generator_holds_a_mode(x, n, box):
    def parts():
        with torch.no_grad():
            yield x * 1
        yield x * 2

    gen = parts()
    first = next(gen)
    inside = torch.is_grad_enabled()
    rest = list(gen)
    return first, inside, rest, modes()


@program
def a_generator_with_a_mode_is_closed(x, n, box):
    def parts():
        with torch.no_grad():
            yield x * 1
            yield x * 2

    gen = parts()
    first = next(gen)
    gen.close()
    return first, modes()


@program
def threads_setting(x, n, box):
    return torch.get_num_threads(), x * n


@program
def sdpa_backend_choice(x, n, box):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q = x[None, None]
    with sdpa_kernel(SDPBackend.MATH):
        y = torch.nn.functional.scaled_dot_product_attention(q, q, q)
    return y * n


@program(breaks="not-inlined")
def saved_tensor_hooks(x, n, box):
    def pack(t):
        return t * 2

    def unpack(t):
        return t / 2

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = x.exp() * n
    return y


@program
def tensors_on_the_meta_device(x, n, box):
    y = torch.empty(2, 3, device="meta")
    z = y @ torch.empty(3, n, device="meta")
    return z.shape, z.device, torch.zeros_like(z, device="cpu")


def kernels():
    cuda = torch.backends.cuda
    return cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled(), cuda.math_sdp_enabled()


@program
def kernels_of_attention(x, n, box):
    q = x.reshape(1, 1, *x.shape)
    backends = [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION][: 1 + n % 2]
    with sdpa_kernel(backends):
        y = torch.nn.functional.scaled_dot_product_attention(q, q, q)
        box.log.append((kernels(), SDPBackend.MATH in backends, {SDPBackend.MATH: n}))
    return y, kernels()


@program
def kernels_of_attention_after_an_error(x, n, box):
    try:
        with sdpa_kernel(SDPBackend.MATH):
            box.log.append(kernels())
            raise ValueError(n)
    except ValueError:
        box.log.append(kernels())
    torch.backends.cuda.enable_flash_sdp(False)
    inside = kernels()
    torch.backends.cuda.enable_flash_sdp(True)
    return x * n, inside, kernels()


@program(breaks="global-attribute-write")
def flags_of_backends(x, n, box):
    flags = torch.backends.cudnn
    seen = flags.benchmark, torch.backends.mkldnn.enabled, torch.get_float32_matmul_precision()
    flags.benchmark = not seen[0]
    again = flags.benchmark
    flags.benchmark = seen[0]
    return seen, again, x * n * seen[1], torch.distributed.is_available()


@program
def a_branch_on_flags_of_backends(x, n, box):
    if torch.backends.mkldnn.enabled and torch.distributed.is_available():
        x = x * 2
    return x + n * torch.backends.cudnn.enabled, torch.distributed.is_initialized()
