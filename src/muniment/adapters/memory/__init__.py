"""The oracle: storage in plain Python collections, which every other adapter has to agree with."""

from muniment.adapters.memory.storage import MemoryStorage

__all__ = ["MemoryStorage"]
