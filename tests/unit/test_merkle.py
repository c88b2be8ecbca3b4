"""The hash tree agrees with RFC 9162 section 2.1, however it was grown."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.merkle import (
    EMPTY_ROOT,
    HASH_BYTES,
    extend_edge,
    hash_leaf,
    hash_node,
    pack_edge,
    root_of,
    unpack_edge,
)
from muniment.errors import IntegrityError

# The reference entries of Certificate Transparency, and the roots after each of them. Source: the published test
# constants of google/certificate-transparency (merkle_tree_test.cc), the same in transparency-dev/merkle.
REFERENCE_ENTRIES = [
    bytes.fromhex(entry)
    for entry in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
REFERENCE_ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]

HASHES = st.binary(min_size=HASH_BYTES, max_size=HASH_BYTES)


def naive_root(leaves: Sequence[bytes]) -> bytes:
    """MTH as the RFC writes it: split at the largest power of two below n."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return sha256(b"\x01" + naive_root(leaves[:split]) + naive_root(leaves[split:])).digest()


def grow(leaves: Sequence[bytes]) -> list[bytes]:
    return extend_edge([], 0, leaves)


@pytest.mark.parametrize("size", range(9))
def test_reference_roots(size: int) -> None:
    leaves = [hash_leaf(entry) for entry in REFERENCE_ENTRIES[:size]]
    assert root_of(grow(leaves)).hex() == REFERENCE_ROOTS[size]


def test_reference_hashes() -> None:
    """The known answers of the RFC 6962 hasher: an empty tree, an empty leaf, a leaf, a node."""
    assert EMPTY_ROOT.hex() == REFERENCE_ROOTS[0]
    assert hash_leaf(b"").hex() == REFERENCE_ROOTS[1]
    assert hash_leaf(b"L123456").hex() == "395aa064aa4c29f7010acfe3f25db9485bbd4b91897b6ad7ad547639252b4d56"
    assert hash_node(b"N123", b"N456").hex() == "aa217fe888e47007fa15edab33c2b492a722cb106c64667fc2b044444de66bbb"


def test_a_leaf_is_no_node() -> None:
    left, right = hash_leaf(b"a"), hash_leaf(b"b")
    assert hash_leaf(left + right) != hash_node(left, right)


def test_edge_of_every_size_is_the_roots_of_its_perfect_subtrees() -> None:
    leaves = [hash_leaf(str(number).encode()) for number in range(70)]
    for size in range(len(leaves) + 1):
        edge, start = grow(leaves[:size]), 0
        for node, width in zip(edge, [1 << bit for bit in reversed(range(8)) if size >> bit & 1], strict=True):
            assert node == naive_root(leaves[start : start + width])
            start += width
        assert root_of(edge) == naive_root(leaves[:size])


@given(st.lists(HASHES, max_size=130))
def test_root_from_the_edge_equals_the_naive_root(leaves: list[bytes]) -> None:
    assert root_of(grow(leaves)) == naive_root(leaves)


@given(st.lists(st.lists(HASHES, max_size=20), max_size=8))
def test_edge_does_not_depend_on_the_batches(batches: list[list[bytes]]) -> None:
    edge: list[bytes] = []
    size = 0
    for batch in batches:
        before = list(edge)
        grown = extend_edge(edge, size, iter(batch))
        assert edge == before, "the edge that was handed in is left alone"
        edge, size = unpack_edge(pack_edge(grown), size + len(batch)), size + len(batch)
    assert edge == grow([leaf for batch in batches for leaf in batch])


@given(st.lists(HASHES, min_size=1, max_size=40), st.data())
def test_any_change_moves_the_root(leaves: list[bytes], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(leaves) - 1))
    changed = [*leaves[:at], bytes([leaves[at][0] ^ 1]) + leaves[at][1:], *leaves[at + 1 :]]
    assert root_of(grow(changed)) != root_of(grow(leaves))
    assert root_of(grow(leaves[:-1])) != root_of(grow(leaves))


@pytest.mark.parametrize(("length", "size"), [(1, 0), (0, 1), (31, 1), (33, 1), (64, 1), (32, 3), (64, 4), (96, 3)])
def test_edge_of_another_length_is_refused(length: int, size: int) -> None:
    with pytest.raises(IntegrityError, match=f"{length} bytes .* {size} leaves"):
        unpack_edge(b"x" * length, size)


def test_edge_of_an_empty_tree() -> None:
    assert unpack_edge(b"", 0) == []
    assert pack_edge([]) == b""
    assert extend_edge([], 0, []) == []
