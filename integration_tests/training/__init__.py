"""Training: steps of optimizers, schedules of learning rates, clipping, whole steps."""
