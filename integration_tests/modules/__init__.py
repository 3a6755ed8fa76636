"""`nn.Module` and scripted modules, and methods of them that are compiled."""
