"""For `python -m pytest --pyargs muniment.testing`: a failed assertion of a suite shows its values."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("muniment.testing.facts")
