"""Settings of hypothesis for the tests of this package."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# The same examples each time, and no limit on time: machines that run tests are shared, and the
# first draw of a text on a new machine makes a table of Unicode.
settings.register_profile(
    "deterministic",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("deterministic")
