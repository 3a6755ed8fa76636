"""The optimizers of torch's own tests (``optim_db``) with their samples of options, compiled beside
plain."""
