"""Modes for functions of torch, and the settings of torch that are in force."""
