"""Output graphs, subgraph tracers and higher-order operators."""
