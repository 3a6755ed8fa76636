"""Iterators and loops: what is requested from whom, how often, and where each stands afterwards."""
