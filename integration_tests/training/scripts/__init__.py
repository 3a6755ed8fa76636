"""Training scripts in the style of libraries; each is small and needs torch alone."""

from .generative import Diffusion, Distillation, Gan, MeanTeacher
from .gpt import GptTraining
from .research import Contrastive, MetaLearning, PhysicsInformed, PolicyGradient
from .script import Script
from .supervised import Lightning, Lora, Timm, Trainer

SCRIPTS: dict[str, type[Script]] = {
    "GPT": GptTraining,
    "timm": Timm,
    "transformers Trainer": Trainer,
    "Lightning": Lightning,
    "diffusers": Diffusion,
    "policy gradient": PolicyGradient,
    "GAN with two optimizers": Gan,
    "meta-learning": MetaLearning,
    "mean teacher": MeanTeacher,
    "contrastive learning": Contrastive,
    "distillation": Distillation,
    "LoRA": Lora,
    "physics-informed network": PhysicsInformed,
}

__all__ = ["SCRIPTS", "Script"]
