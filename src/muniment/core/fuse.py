"""Merging the rankings of several searches into one: by rank (`fuse_reciprocal`) or by score (`fuse_convex`).

Ranks need no common scale and ignore how clear a lead is; scores keep the lead and need scaling first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import Final, NamedTuple

from muniment.errors import UsageError

RANK_DAMPING: Final = 60
"""`k` of reciprocal rank fusion: how little the first ranks lead the next ones.

Source: Cormack, Clarke and Buettcher, "Reciprocal Rank Fusion outperforms Condorcet", SIGIR 2009.
"""


class Fused(NamedTuple):
    """An item with its fused score, and what each ranking gave to it (0 where it is not in one)."""

    item: int
    score: float
    parts: tuple[float, ...]


def fuse_reciprocal(lists: Sequence[Sequence[int]], weights: Sequence[float], *, k: int = RANK_DAMPING) -> list[Fused]:
    """Ranked lists merged by weighted reciprocal rank, best first, ties by the smaller item.

    Shapes: `lists` are L ranked lists of item numbers, each without repeats; `weights` has L entries. A list of
            weight 0 gives nothing, not even its items.
    Units:  ranks start at 1; a part is `weight / (k + rank)`.
    Raises: UsageError for a repeat, weights that are not L finite numbers of 0 or more with one above 0, or `k` < 1.
    Cost:   O(total length).
    """
    check_weights(weights, len(lists))
    if k < 1:
        raise UsageError(f"k must be 1 or more, not {k}")
    legs: list[dict[int, float]] = []
    for items, weight in zip(lists, weights, strict=True):
        leg = {item: weight / (k + rank) for rank, item in enumerate(items, start=1)}
        if len(leg) != len(items):
            raise UsageError("a ranked list names an item twice")
        legs.append(leg if weight else {})
    return _merge(legs)


def fuse_convex(legs: Sequence[Mapping[int, float]], weights: Sequence[float]) -> list[Fused]:
    """Scored items merged by the weighted mean of their scaled scores, best first, ties by the smaller item.

    Shapes: `legs` are L mappings from item to score; `weights` has L entries. A leg of weight 0 gives nothing, not
            even its items.
    Units:  within a leg the lowest score becomes 0 and the highest 1 (all equal: 1); weights are divided by their sum,
            so that a fused score lies in 0..1 and an item that is best everywhere has 1.
    Raises: UsageError for weights that are not L finite numbers of 0 or more with one above 0.
    Cost:   O(total length).
    """
    check_weights(weights, len(legs))
    total = math.fsum(weights)
    scaled: list[dict[int, float]] = []
    for leg, weight in zip(legs, weights, strict=True):
        if not weight or not leg:
            scaled.append({})
            continue
        low, high = min(leg.values()), max(leg.values())
        width = high - low
        share = weight / total
        scaled.append({item: share * ((score - low) / width if width else 1.0) for item, score in leg.items()})
    return _merge(scaled)


def check_weights(weights: Sequence[float], count: int) -> None:
    """Raises: UsageError unless there are `count` finite weights of 0 or more, and one of them is above 0."""
    if len(weights) != count:
        raise UsageError(f"{count} rankings need as many weights, not {len(weights)}")
    if not all(math.isfinite(weight) and weight >= 0.0 for weight in weights) or not any(weights):
        raise UsageError(f"weights must be finite and 0 or more, and not all 0: {list(weights)}")


def _merge(legs: Sequence[Mapping[int, float]]) -> list[Fused]:
    fused: list[Fused] = []
    for item in {item: None for leg in legs for item in leg}:
        parts = tuple(leg.get(item, 0.0) for leg in legs)
        # Not sum(), which rounds differently from Python 3.12 on.
        fused.append(Fused(item, reduce(add, parts), parts))
    fused.sort(key=lambda one: (-one.score, one.item))
    return fused
