"""Sound, graphs, differential equations, Gaussian processes, tables, reinforcement learning."""

from __future__ import annotations

import sys
import types
from typing import Any

import torch
from torch import Tensor, nn

from integration_tests.benchmarks.compiled_share._step import (
    classes,
    classifier,
    forward,
    loss_of,
    training,
)
from integration_tests.benchmarks.real_models._workload import Program, Workload, library

_SOUND = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "conv_dim": (16,) * 7,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}


def _transformer(name: str, **sizes: Any) -> nn.Module:
    model_class = getattr(library("transformers"), name)
    model: nn.Module = model_class(model_class.config_class(**sizes))
    return model


def _ctc(name: str) -> Program:
    """Speech with its transcript; masks of time are drawn in every call."""
    model = _transformer(name, **_SOUND, vocab_size=20, mask_time_length=2, layerdrop=0.0)
    return training(model, input_values=torch.randn(2, 4000), labels=torch.randint(3, 20, (2, 4)))


def _whisper() -> Program:
    sizes = {
        "vocab_size": 99,
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "num_mel_bins": 20,
        "max_source_positions": 30,
        "max_target_positions": 32,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "decoder_start_token_id": 1,
    }
    model = _transformer("WhisperForConditionalGeneration", **sizes)
    sound, text = torch.randn(2, 20, 60), torch.randint(3, 99, (2, 8))
    return training(model, input_features=sound, labels=text, use_cache=False)


def _conformer() -> Program:
    model = library("conformer").Conformer(
        dim=32, depth=3, dim_head=16, heads=2, conv_kernel_size=7, attn_dropout=0.1, ff_dropout=0.1
    )
    return training(model, torch.randn(2, 24, 32))


def _speech_brain() -> Program:
    """A speaker model; the package looks for ``torchaudio``, whose parts it does not use here."""
    if "torchaudio" not in sys.modules:
        sys.modules["torchaudio"] = types.ModuleType("torchaudio")
    model = library("speechbrain.lobes.models.ECAPA_TDNN").ECAPA_TDNN(
        input_size=20,
        channels=[16, 16, 16, 16, 32],
        attention_channels=8,
        se_channels=8,
        lin_neurons=16,
    )
    return training(model, torch.randn(2, 30, 20))


def _graph_network(name: str, **options: Any) -> Program:
    network = getattr(library("torch_geometric.nn").models, name)
    model = network(in_channels=8, hidden_channels=16, num_layers=3, out_channels=4, **options)

    def loss(x: Tensor, edges: Tensor, wanted: Tensor) -> Tensor:
        return nn.functional.cross_entropy(model(x, edges), wanted)

    edges = torch.randint(0, 12, (2, 40))
    return loss_of(loss, [model.train()], torch.randn(12, 8), edges, classes(12))


def _fourier_operator() -> Program:
    model = library("neuralop.models").FNO((4, 4), 1, 1, 8, n_layers=2)
    return training(model, torch.randn(2, 1, 16, 16))


def _equation(method: str) -> Program:
    """A neural ordinary differential equation."""
    net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 4))
    solve = library("torchdiffeq").odeint
    grid = torch.linspace(0, 1, 4)

    def loss(y: Tensor) -> Any:
        found = solve(lambda t, y: net(y) * t, y, grid, method=method, rtol=1e-2, atol=1e-2)
        return found[-1].square().mean()

    return loss_of(loss, [net], torch.randn(3, 4))


class _Drift(nn.Module):
    """A stochastic differential equation with diagonal noise."""

    noise_type = "diagonal"
    sde_type = "ito"

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 4)

    def f(self, t: Tensor, y: Tensor) -> Any:
        return self.net(y)

    def g(self, t: Tensor, y: Tensor) -> Tensor:
        return torch.sigmoid(y) * 0.1


def _stochastic_equation() -> Program:
    package, drift = library("torchsde"), _Drift()
    grid = torch.linspace(0, 1, 4)

    def loss(y: Tensor) -> Any:
        noise = package.BrownianInterval(0.0, 1.0, size=(3, 4), entropy=3)
        return package.sdeint(drift, y, grid, bm=noise, dt=0.25, method="euler")[-1].mean()

    return loss_of(loss, [drift], torch.randn(3, 4))


def _gaussian_process() -> Program:
    package = library("gpytorch")

    class Process(package.models.ExactGP):  # type: ignore[misc, name-defined]
        def __init__(self, x: Tensor, y: Tensor, likelihood: Any) -> None:
            super().__init__(x, y, likelihood)
            self.mean_module = package.means.ConstantMean()
            self.covar_module = package.kernels.ScaleKernel(package.kernels.RBFKernel())

        def forward(self, x: Tensor) -> Any:
            covariance = self.covar_module(x)
            return package.distributions.MultivariateNormal(self.mean_module(x), covariance)

    x = torch.linspace(0, 1, 12)
    y = torch.sin(x * 6)
    likelihood = package.likelihoods.GaussianLikelihood()
    model = Process(x, y, likelihood).train()
    likelihood.train()
    marginal = package.mlls.ExactMarginalLogLikelihood(likelihood, model)

    def loss(x: Tensor, y: Tensor) -> Any:
        return -marginal(model(x), y)

    return loss_of(loss, [model], x, y)


def _table() -> Program:
    model = library("pytorch_tabnet.tab_network").TabNet(
        8, 4, n_d=4, n_a=4, n_steps=2, virtual_batch_size=4, group_attention_matrix=torch.eye(8)
    )

    def loss(x: Tensor, wanted: Tensor) -> Any:
        scores, sparsity = model(x)
        return nn.functional.cross_entropy(scores, wanted) - 1e-3 * sparsity

    return loss_of(loss, [model.train()], torch.randn(8, 8), classes(8))


def _proximal_policy() -> Program:
    """The loss of PPO over a policy of ``stable_baselines3``."""
    spaces = library("gymnasium.spaces")
    policies = library("stable_baselines3.common.policies")
    policy = policies.ActorCriticPolicy(
        spaces.Box(-1.0, 1.0, (6,)), spaces.Discrete(3), lambda _: 1e-3
    )

    def loss(seen: Tensor, done: Tensor, old: Tensor, gain: Tensor, wanted: Tensor) -> Any:
        values, likelihood, entropy = policy.evaluate_actions(seen, done)
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        ratio = torch.exp(likelihood - old)
        clipped = torch.clamp(ratio, 0.8, 1.2)
        surrogate = torch.min(gain * ratio, gain * clipped).mean()
        value_loss = nn.functional.mse_loss(wanted, values.flatten())
        return -surrogate + 0.5 * value_loss - 0.01 * entropy.mean()

    seen, done = torch.randn(8, 6), torch.randint(0, 3, (8,))
    old, gain, wanted = torch.randn(3, 8).unbind()
    return loss_of(loss, [policy.train()], seen, done, old, gain, wanted)


def _clipped_policy() -> Program:
    """The loss of ``torchrl`` for PPO, over a TensorDict."""
    package, tensordict = library("torchrl"), library("tensordict")
    modules, objectives = library("torchrl.modules"), library("torchrl.objectives")
    nn_modules = library("tensordict.nn")
    actor = modules.ProbabilisticActor(
        nn_modules.TensorDictModule(nn.Linear(6, 3), ["observation"], ["logits"]),
        in_keys=["logits"],
        distribution_class=torch.distributions.Categorical,
    )
    critic = modules.ValueOperator(nn.Linear(6, 1), ["observation"])
    loss_module = objectives.ClipPPOLoss(actor, critic)
    batch = tensordict.TensorDict(
        {
            "observation": torch.randn(8, 6),
            "action": torch.randint(0, 3, (8,)),
            "action_log_prob": torch.randn(8),
            "advantage": torch.randn(8, 1),
            "value_target": torch.randn(8, 1),
        },
        [8],
    )
    del package

    def loss(batch: Any) -> Any:
        found = loss_module(batch)
        return found["loss_objective"] + found["loss_critic"] + found["loss_entropy"]

    return loss_of(loss, [loss_module], batch)


def _flow(package: str) -> Program:
    """The likelihood of a normalizing flow."""
    if package == "zuko":
        flow = library("zuko.flows").MAF(4, transforms=2, hidden_features=[16])
        return loss_of(lambda x: -flow().log_prob(x).mean(), [flow], torch.randn(8, 4))

    flows, parts = library("nflows.flows.base"), library("nflows.transforms")
    layers = [parts.MaskedAffineAutoregressiveTransform(4, 16), parts.ReversePermutation(4)]
    normal = library("nflows.distributions.normal").StandardNormal([4])
    model = flows.Flow(parts.CompositeTransform(layers), normal)
    return loss_of(lambda x: -model.log_prob(x).mean(), [model], torch.randn(8, 4))


def _metric_learning() -> Program:
    package = library("pytorch_metric_learning")
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
    contrast = library("pytorch_metric_learning.losses").NTXentLoss()
    del package

    def loss(x: Tensor, labels: Tensor) -> Any:
        return contrast(net(x), labels)

    return loss_of(loss, [net], torch.randn(8, 8), classes(8, 3))


def _equivariant() -> Program:
    o3, layers = library("e3nn.o3"), library("e3nn.nn")
    product = o3.FullyConnectedTensorProduct("4x0e+2x1o", "1x0e+1x1o", "4x0e+2x1o")
    norm = layers.BatchNorm("4x0e+2x1o")

    def loss(x: Tensor, direction: Tensor) -> Any:
        harmonics = o3.spherical_harmonics("1x0e+1x1o", direction, True)
        return norm(product(x, harmonics)).square().mean()

    return loss_of(loss, [product, norm], torch.randn(6, 10), torch.randn(6, 3))


def _tensor_layer() -> Program:
    """A layer whose weight is a factorized tensor."""
    layer = library("tltorch").FactorizedLinear((4, 4), (4, 4), rank=0.5, factorization="cp")
    model = nn.Sequential(layer, nn.ReLU(), nn.Linear(16, 4))
    return loss_of(classifier(model), [model], torch.randn(4, 16), classes(4))


def _metrics() -> Program:
    collection = library("torchmetrics").MetricCollection(
        {
            "accuracy": library("torchmetrics.classification").MulticlassAccuracy(4),
            "f1": library("torchmetrics.classification").MulticlassF1Score(4),
        }
    )
    return forward(collection, torch.randn(8, 4).softmax(-1), classes(8))


_FACE = ("transformers",)
_GRAPHS = ("torch_geometric",)

SCIENCE = (
    Workload("wav2vec2 with ctc, training", lambda: _ctc("Wav2Vec2ForCTC"), _FACE, True),
    Workload("hubert with ctc, training", lambda: _ctc("HubertForCTC"), _FACE, True),
    Workload("whisper with labels, training", _whisper, _FACE, True),
    Workload("conformer, training", _conformer, ("conformer",), True),
    Workload("speechbrain ecapa, training", _speech_brain, ("speechbrain",), True),
    Workload("pyg gin, training", lambda: _graph_network("GIN"), _GRAPHS, True),
    Workload("pyg gcn, training", lambda: _graph_network("GCN"), _GRAPHS, True),
    Workload("pyg gat, training", lambda: _graph_network("GAT", heads=2), _GRAPHS, True),
    Workload("fourier neural operator, training", _fourier_operator, ("neuralop",), True),
    Workload("torchdiffeq rk4, training", lambda: _equation("rk4"), ("torchdiffeq",), True),
    Workload("torchdiffeq dopri5, training", lambda: _equation("dopri5"), ("torchdiffeq",), True),
    Workload("torchsde euler, training", _stochastic_equation, ("torchsde",), True),
    Workload("gpytorch exact process, training", _gaussian_process, ("gpytorch",), True),
    Workload("tabnet, training", _table, ("pytorch_tabnet",), True),
    Workload(
        "stable_baselines3 ppo, training",
        _proximal_policy,
        ("stable_baselines3", "gymnasium"),
        True,
    ),
    Workload("torchrl ppo, training", _clipped_policy, ("torchrl", "tensordict"), True),
    Workload("zuko flow, training", lambda: _flow("zuko"), ("zuko",), True),
    Workload("nflows flow, training", lambda: _flow("nflows"), ("nflows",), True),
    Workload("metric learning, training", _metric_learning, ("pytorch_metric_learning",), True),
    Workload("e3nn, training", _equivariant, ("e3nn",), True),
    Workload("tensorly layer, training", _tensor_layer, ("tltorch",), True),
    Workload("torchmetrics collection", _metrics, ("torchmetrics",)),
)
