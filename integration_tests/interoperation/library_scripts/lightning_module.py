"""Train one of Lightning's own demo modules with its `Trainer`."""

import logging
import warnings

import lightning
import torch
from lightning.pytorch.demos.boring_classes import DemoModel, RandomDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def main():
    lightning.seed_everything(0, verbose=False)
    model = torch.compile(DemoModel(out_dim=10))
    trainer = lightning.Trainer(
        max_steps=4,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    batches = torch.utils.data.DataLoader(RandomDataset(32, 16), batch_size=4)
    trainer.fit(model, batches)
    print(f"{trainer.global_step} steps, weights {model.l1.weight.abs().sum():.4f}")


if __name__ == "__main__":
    main()
