"""The hash tree over a ledger's leaves, as RFC 9162 section 2.1 defines it, kept as its right edge.

The edge of a tree of n leaves is the list of the roots of its perfect subtrees, largest first: one for each bit that is
set in n. It is all that an append needs and all that the root needs, so the head of a ledger stays O(log n).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final

from muniment.errors import IntegrityError

HASH_BYTES: Final = 32
EMPTY_ROOT: Final = sha256(b"").digest()


def hash_leaf(entry: bytes) -> bytes:
    """The hash of a leaf: 0x00 before the entry, so that no leaf can pass for an inner node."""
    return sha256(b"\x00" + entry).digest()


def hash_node(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node: 0x01 before its two children."""
    return sha256(b"\x01" + left + right).digest()


def extend_edge(edge: Sequence[bytes], size: int, leaves: Iterable[bytes]) -> list[bytes]:
    """The edge of the tree of `size` leaves after more leaves are appended.

    Cost: one hash per leaf on average; pure.
    """
    out = list(edge)
    sha = sha256
    for leaf in leaves:
        node = leaf
        merged = size
        while merged & 1:
            node = sha(b"\x01" + out.pop() + node).digest()
            merged >>= 1
        out.append(node)
        size += 1
    return out


def root_of(edge: Sequence[bytes]) -> bytes:
    """The root of the tree with that edge: the hash of nothing for an empty tree."""
    if not edge:
        return EMPTY_ROOT
    root = edge[-1]
    for left in reversed(edge[:-1]):
        root = hash_node(left, root)
    return root


def pack_edge(edge: Sequence[bytes]) -> bytes:
    """The edge as bytes, for the head row."""
    return b"".join(edge)


def unpack_edge(packed: bytes, size: int) -> list[bytes]:
    """The edge of a tree of `size` leaves from its bytes.

    Raises: IntegrityError if the length is not that of such an edge: it was stored.
    """
    if len(packed) != HASH_BYTES * size.bit_count():
        raise IntegrityError(f"an edge of {len(packed)} bytes does not belong to a tree of {size} leaves")
    return [packed[at : at + HASH_BYTES] for at in range(0, len(packed), HASH_BYTES)]
