"""What turns texts into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@runtime_checkable
class Embedder(Protocol):
    """A model that maps a text to a direction.

    Laws: 1. `embed` gives one vector per text, in order, each of `dimension` finite numbers. 2. A text's vector depends
    on nothing but the text. 3. What fails raises; nothing is left out silently.
    """

    @property
    def name(self) -> str:
        """The model's name: vectors under two names are never compared."""
        ...

    @property
    def dimension(self) -> int | None:
        """Numbers of a vector; None where that is known only once there is one."""
        ...

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Shapes: n texts become (n, dimension)."""
        ...
