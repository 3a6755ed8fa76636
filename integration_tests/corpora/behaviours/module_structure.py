"""A module's flag, plain tensor attribute, parameter, buffer or submodule is replaced between
calls, by any route; modules of every kind are Python objects."""

# mypy: ignore-errors

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize

from integration_tests.corpora.behaviours import program

torch.manual_seed(0)


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("scratch", torch.zeros(3), persistent=False)
        self.plain = torch.full((3,), 2.0)
        self.flag = True
        self.inner = nn.Identity()

    def forward(self, x):
        y = self.inner(x * self.w) + self.plain
        return y * 2 if self.flag and self.training else y


MODEL = Small()


@program
def a_flag_changes_between_calls(x, n, box):
    y = MODEL(x)
    MODEL.flag = not MODEL.flag
    return y, MODEL.flag


@program
def a_plain_tensor_attribute_is_replaced(x, n, box):
    y = MODEL(x)
    MODEL.plain = MODEL.plain + 1
    return y


@program
def a_parameter_is_replaced(x, n, box):
    y = MODEL(x)
    MODEL.w = nn.Parameter(torch.full((3,), float(n)))
    return y, MODEL(x), [name for name, _ in MODEL.named_parameters()]


@program
def a_parameter_is_replaced_through_the_dictionary(x, n, box):
    y = MODEL(x)
    MODEL._parameters["w"] = nn.Parameter(torch.full((3,), n + 0.5))
    return y, MODEL.w


@program
def a_buffer_is_assigned_in_forward(x, n, box):
    MODEL.count = MODEL.count + 1
    MODEL.count += n
    MODEL.scratch = x.detach().sum(0)
    return MODEL(x), MODEL.count, sorted(MODEL.state_dict())


@program
def a_submodule_is_replaced(x, n, box):
    y = MODEL(x)
    MODEL.inner = nn.ReLU() if isinstance(MODEL.inner, nn.Identity) else nn.Identity()
    return y, MODEL(x), repr(MODEL.inner)


@program
def attributes_move_between_kinds(x, n, box):
    model = Small()
    model.plain = nn.Parameter(torch.ones(3))
    del model.w
    model.w = torch.full((3,), float(n))
    found = sorted(model._parameters), "w" in model.__dict__, hasattr(model, "nothing")
    return model(x), found


@program
def a_parameter_must_be_a_parameter(x, n, box):
    try:
        MODEL.w = torch.ones(3)
    except TypeError as error:
        return str(error)[:40], x * n
    return x


@program
def assigning_before_init_is_an_error(x, n, box):
    class Early(nn.Module):
        def __init__(self):
            self.p = nn.Parameter(torch.ones(1))

    try:
        Early()
    except AttributeError as error:
        return str(error), x * n


@program
def registering(x, n, box):
    model = nn.Module()
    model.register_parameter("p", nn.Parameter(torch.ones(3)))
    model.register_parameter("none", None)
    model.register_buffer("b", torch.ones(3) * n, persistent=False)
    model.register_module("m", nn.ReLU())
    model.add_module("k", nn.Tanh())
    names = (
        [name for name, _ in model.named_parameters()],
        [name for name, _ in model.named_buffers()],
    )
    return (
        model.m(x * model.p) + model.b,
        names,
        [name for name, _ in model.named_children()],
        model.none is None,
    )


@program
def registering_what_is_there_is_an_error(x, n, box):
    found = []
    for act in (
        lambda: MODEL.register_buffer("w", torch.ones(1)),
        lambda: MODEL.register_buffer("a.b", torch.ones(1)),
        lambda: MODEL.register_parameter("q", torch.ones(1)),
        lambda: MODEL.add_module("flag", nn.ReLU()),
        lambda: MODEL.nothing,
    ):
        try:
            act()
        except (KeyError, TypeError, AttributeError) as error:
            found.append((type(error).__name__, str(error)))
    return found, x * n


LAYERS = nn.ModuleList([nn.ReLU(), nn.Tanh()])


@program
def a_module_list(x, n, box):
    LAYERS.append(nn.Sigmoid())
    for i, layer in enumerate(LAYERS):
        x = layer(x) + i
    names = [type(layer).__name__ for layer in LAYERS[1:]]
    LAYERS[0] = nn.ELU()
    LAYERS.insert(1, nn.ReLU())
    popped = LAYERS.pop(-1)
    del LAYERS[1]
    return x, names, len(LAYERS), type(popped).__name__, "0" in LAYERS._modules


@program
def a_module_list_is_made_here(x, n, box):
    layers = nn.ModuleList(nn.Identity() for _ in range(n))
    layers += [nn.ReLU()]
    layers.extend([nn.Tanh()])
    for layer in layers:
        x = layer(x)
    return x, len(layers), [name for name, _ in layers.named_children()]


TABLE = nn.ModuleDict({"relu": nn.ReLU(), "tanh": nn.Tanh()})


@program
def a_module_dict(x, n, box):
    TABLE["gelu"] = nn.GELU()
    for name, layer in TABLE.items():
        x = layer(x) if name != "tanh" else x
    keys = list(TABLE), list(TABLE.keys()), "relu" in TABLE, len(TABLE)
    TABLE.pop("gelu")
    TABLE.update({"relu": nn.ReLU6()})
    return x, keys, TABLE["relu"](x)


PARAMETERS = nn.ParameterList([torch.ones(3), torch.full((3,), 2.0)])


@program
def a_parameter_list(x, n, box):
    y = x
    for p in PARAMETERS:
        y = y * p
    PARAMETERS.append(torch.ones(3) * n)
    PARAMETERS[0] = nn.Parameter(torch.full((3,), float(n)))
    return y * PARAMETERS[-1], len(PARAMETERS), [name for name, _ in PARAMETERS.named_parameters()]


NAMED = nn.ParameterDict({"a": torch.ones(3), "b": nn.Parameter(torch.full((3,), 2.0))})


@program
def a_parameter_dict(x, n, box):
    y = x * NAMED["a"] + NAMED.b
    NAMED["c"] = nn.Parameter(torch.ones(3) * n)
    found = list(NAMED), "c" in NAMED, [type(v).__name__ for v in NAMED.values()]
    del NAMED["c"]
    return y, found, sorted(NAMED.keys())


@program
def a_sequential(x, n, box):
    model = nn.Sequential(nn.ReLU(), nn.Tanh())
    model.append(nn.Sigmoid())
    model[0] = nn.ELU()
    return (
        model(x),
        len(model),
        model[1:](x),
        [type(m).__name__ for m in model],
        type(model[-1]).__name__,
    )


@program
def modules_are_walked(x, n, box):
    model = nn.Sequential(Small(), nn.Sequential(nn.Linear(3, 3), nn.ReLU()))
    names = [name for name, _ in model.named_modules()]
    count = sum(p.numel() for p in model.parameters())
    sub = model.get_submodule("1.0")
    return (
        names,
        count,
        sub.weight.shape,
        model.get_parameter("0.w") * n,
        len(list(model.children())),
        x,
    )


@program
def modules_are_applied(x, n, box):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))

    def init(m):
        if isinstance(m, nn.Linear):
            nn.init.constant_(m.weight, n)
            m.bias.data.zero_()

    return model.apply(init)(x)


@program
def train_and_eval(x, n, box):
    model = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(3))
    before = model(x)
    model.eval()
    after = model(x)
    model.train(n > 2)
    return (
        before,
        after,
        model(x),
        [m.training for m in model.modules()],
        model[1].num_batches_tracked,
    )


@program(breaks="not-inlined")
def parameters_are_frozen(x, n, box):
    model = nn.Linear(3, 2)
    nn.init.ones_(model.weight)
    nn.init.zeros_(model.bias)
    model.requires_grad_(False)
    model.bias.requires_grad_(True)
    y = model(x.detach())
    return y, y.requires_grad, [p.requires_grad for p in model.parameters()]


@program(breaks="tensor-attribute-write")
def modules_change_dtype(x, n, box):
    model = nn.Linear(3, 2).double()
    half = model.to(torch.bfloat16)
    return (
        half is model,
        model.weight.dtype,
        model(x.to(torch.bfloat16)).shape,
        model.float().bias.dtype,
    )


@program
def a_state_dict_is_loaded(x, n, box):
    model, other = nn.Linear(3, 1), nn.Linear(3, 1)
    other.load_state_dict({k: v * n for k, v in model.state_dict().items()})
    found = model.load_state_dict({"weight": torch.ones(1, 3)}, strict=False)
    return other.weight / model.weight, found.missing_keys, model(x).shape


@program
def functional_call_with_other_parameters(x, n, box):
    made = {"w": torch.full((3,), float(n)), "count": torch.ones(())}
    return torch.func.functional_call(MODEL, made, (x,)), MODEL(x), MODEL.w is made["w"]


@program(breaks="operator-error")
def functional_call_with_an_error(x, n, box):
    try:
        torch.func.functional_call(MODEL, {"w": torch.ones(5)}, (x,))
    except RuntimeError as error:
        return type(error).__name__, MODEL(x), MODEL.w


class Doubled(nn.Module):
    def forward(self, w):
        return w * 2

    def right_inverse(self, w):
        return w / 2


PARAMETRIZED = nn.Linear(3, 2)
torch.nn.init.ones_(PARAMETRIZED.weight)
torch.nn.init.ones_(PARAMETRIZED.bias)
parametrize.register_parametrization(PARAMETRIZED, "weight", Doubled())


@program
def a_parametrization_is_used(x, n, box):
    return PARAMETRIZED(x), PARAMETRIZED.weight * n, parametrize.is_parametrized(PARAMETRIZED)


@program
def a_parametrization_is_cached(x, n, box):
    with parametrize.cached():
        first, second = PARAMETRIZED.weight, PARAMETRIZED.weight
        y = PARAMETRIZED(x)
    return first is second, y


@program(breaks="builtin")
def a_parametrized_weight_is_assigned(x, n, box):
    PARAMETRIZED.weight = torch.full((2, 3), float(n))
    return PARAMETRIZED(x), PARAMETRIZED.parametrizations.weight.original


@program(breaks="builtin")
def a_parametrization_is_registered_and_removed(x, n, box):
    model = nn.Linear(3, 1)
    nn.init.ones_(model.weight)
    nn.init.ones_(model.bias)
    parametrize.register_parametrization(model, "weight", Doubled())
    y = model(x)
    parametrize.remove_parametrizations(model, "weight")
    return y, type(model).__name__, model(x)


SPECTRAL = parametrizations.spectral_norm(nn.Linear(3, 3))


@program
def a_parametrization_with_buffers_of_its_own(x, n, box):
    with torch.no_grad():
        SPECTRAL.parametrizations.weight.original.fill_(0.5)
    return SPECTRAL(x).shape, SPECTRAL(x).sum() * n


@program(breaks="builtin")
def a_lazy_module_is_made_by_its_first_input(x, n, box):
    model = nn.LazyLinear(2)
    before = model.has_uninitialized_params()
    y = model(x)
    return before, type(model).__name__, y.shape, model.weight.shape, model.in_features


RECURRENT = {name: getattr(nn, name)(3, 2, batch_first=True) for name in ("RNN", "LSTM", "GRU")}
for module in RECURRENT.values():
    for p in module.parameters():
        nn.init.constant_(p, 0.25)


@program
def recurrent_networks(x, n, box):
    y = x[None]
    lstm, (h, c) = RECURRENT["LSTM"](y)
    gru, hidden = RECURRENT["GRU"](y, torch.ones(1, 1, 2) * n)
    return RECURRENT["RNN"](y)[0], lstm, h, c, gru, hidden


@program(breaks="data-dependent-shape")
def recurrent_networks_with_packed_sequences(x, n, box):
    packed = nn.utils.rnn.pack_sequence([x[:2], x[:1]])
    out, _ = RECURRENT["GRU"](packed)
    return nn.utils.rnn.pad_packed_sequence(out, batch_first=True)


@program
def recurrent_networks_made_here(x, n, box):
    cell = nn.LSTMCell(3, 2)
    for p in cell.parameters():
        nn.init.constant_(p, 0.5)
    h, c = cell(x)
    for _ in range(n):
        h, c = cell(x, (h, c))
    return h, c


class Recursive(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.child = Recursive(depth - 1) if depth else None
        self.scale = nn.Parameter(torch.full((), 1.0 + depth))

    def forward(self, x):
        return self.child(x) * self.scale if self.child is not None else x


@program
def modules_are_built_recursively(x, n, box):
    model = Recursive(n)
    return model(x), len(list(model.parameters()))


class Counting(nn.Module):
    total = 0

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        type(self).total += 1
        return x * self.calls


COUNTING = Counting()


@program
def a_module_counts_its_calls(x, n, box):
    return COUNTING(x), COUNTING(x), COUNTING.calls, Counting.total


class Delegating(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)

    def forward(self, *args, **kwargs):
        return self.inner(*args, **kwargs)


@program
def a_wrapper_delegates_attributes(x, n, box):
    model = Delegating(MODEL)
    return model(x), model.plain * n, model.w, hasattr(model, "nothing")


@program(breaks="graph-result")
def one_module_under_two_names(x, n, box):
    shared = nn.Linear(3, 3)
    nn.init.eye_(shared.weight)
    nn.init.zeros_(shared.bias)
    model = nn.Sequential(shared, nn.ReLU(), shared)
    return (
        model(x),
        len(list(model.parameters())),
        len(list(model.named_parameters(remove_duplicate=False))),
    )


@program
def dir_and_repr_of_a_module(x, n, box):
    return repr(nn.Sequential(nn.Linear(1, 2), nn.ReLU())), "inner" in dir(MODEL), x * n


@program
def interpolate_and_friends(x, n, box):
    y = F.interpolate(x.T[None], scale_factor=2.0, mode="linear")
    return (
        F.pad(y, (1, n)),
        F.one_hot(torch.arange(3), n + 2),
        nn.functional.cosine_similarity(x, x + 1),
    )
