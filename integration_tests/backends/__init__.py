"""Graphs as backends get them, AOTAutograd, plugins."""
