"""A tool that a model can call, free of any agent framework: what it is called, what it takes, what it does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. Whose memory it touches is fixed when it is made; nothing a model passes can name another."""

    name: str
    description: str
    """For the model: when to use it, and what it wants."""
    parameters: Mapping[str, JsonValue]
    """The JSON schema of its arguments; no further ones are allowed."""
    run: Callable[..., Awaitable[dict[str, JsonValue]]]
    """Takes the arguments by name; the result as a JSON object.

    Raises: UsageError, naming the argument and its rule, for one that the schema does not allow.
    """
