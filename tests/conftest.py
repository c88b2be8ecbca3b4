"""Settings of the whole test run."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# The shipped suites are no test modules to pytest: without this a failed assertion would say nothing.
pytest.register_assert_rewrite("muniment.testing")

# No deadline: other work on the machine must not make a test fail. `thorough` is for a night.
settings.register_profile(
    "default", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, database=None)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default"))
