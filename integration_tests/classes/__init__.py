"""Classes, attributes, descriptors and special methods."""
