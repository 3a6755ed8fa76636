"""The program whose report is shown in the documentation: two models, with breaks,
recompilations and operators that run uncompiled."""

from __future__ import annotations

import torch


class Block(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(width, width)
        self.scale = 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        if y.mean() > 0:
            y = y * self.scale
        return torch.relu(y)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(16) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        print(f"norm {x.norm():.2f}")
        return x.sum()


class Head(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.eye(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        votes = torch.sparse.mm(x.relu().to_sparse(), self.weight)
        counts = torch.bincount(votes.argmax(dim=1), minlength=4)
        if counts.min() == 0:
            counts = counts + 1
        return counts / counts.sum()


@torch.no_grad()
def main() -> None:
    torch.manual_seed(0)
    model, head = Model(), torch.compile(Head())
    compiled = torch.compile(model)
    for size in (4, 4, 6):
        compiled(torch.randn(size, 16))
        head(torch.randn(size, 4))
    for block in model.blocks:
        setattr(block, "scale", 0.5)
    compiled(torch.randn(4, 16))


if __name__ == "__main__":
    main()
