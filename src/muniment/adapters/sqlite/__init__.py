"""The storage port on SQLite: the embedded default."""

from muniment.adapters.sqlite.storage import SqliteStorage

__all__ = ["SqliteStorage"]
