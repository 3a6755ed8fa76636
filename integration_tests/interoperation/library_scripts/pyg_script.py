"""Train a graph network in full batches, as PyG's examples do."""

import torch
import torch.nn.functional as F
import torch_geometric
from torch_geometric.datasets import FakeDataset
from torch_geometric.nn import GCNConv


class GCN(torch.nn.Module):
    def __init__(self, inside, hidden, outside):
        super().__init__()
        self.conv1 = GCNConv(inside, hidden)
        self.conv2 = GCNConv(hidden, outside)

    def forward(self, x, edge_index):
        x = F.dropout(x, p=0.5, training=self.training)
        x = self.conv1(x, edge_index).relu()
        x = F.dropout(x, p=0.5, training=self.training)
        return self.conv2(x, edge_index)


def main():
    torch_geometric.seed_everything(0)
    graph = FakeDataset(num_graphs=1, avg_num_nodes=60, num_channels=8, task="node")[0]
    model = GCN(8, 16, int(graph.y.max()) + 1)
    model = torch.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    losses = []
    for _ in range(4):
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(graph.x, graph.edge_index), graph.y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    model.eval()
    with torch.no_grad():
        right = model(graph.x, graph.edge_index).argmax(dim=-1) == graph.y
    print(f"losses {losses[0]:.4f} to {losses[-1]:.4f}, right {int(right.sum())}")


if __name__ == "__main__":
    main()
