"""Full text changes nothing: over many scopes, the same hits with the same scores, bit for bit, with it and without."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import muniment
from muniment import Archive, Note
from muniment.archive import tenant_search
from muniment.archive.search import parse_request
from muniment.archive.tenant_search import TenantSearcher
from muniment.core.ranking import PLAIN
from muniment.core.text import query_terms
from muniment.testing.doubles import START, FakeClock, SeededEntropy

TENANTS = ("acme", "globex")
SUBJECTS = ("a", "b", None)
WORDS = ("alpha", "alphas", "beta", "gamma", "the", "of", "café", "日本語", "हिन्दी", "สวัสดี", 'a"b', "x" * 1_200, "!!!")
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
STEPS = st.tuples(
    st.sampled_from(["note", "note", "note", "put", "put", "say", "delete", "forget", "erase", "rebuild", "turn"]),
    st.sampled_from(TENANTS),
    st.sampled_from(SUBJECTS),
    TEXTS,
    st.integers(0, 20),
)
OPTIONS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "limit": st.sampled_from([0, 1, 3]),
        "mode": st.just("hybrid"),
        "kinds": st.sampled_from([["note"], ["message"]]),
        "tiers": st.just(["core"]),
        "labels": st.just(["x"]),
        "since": st.just(START + timedelta(seconds=3)),
        "population": st.just(frozenset({3})),
    },
)


def embed(texts: list[str]) -> list[list[float]]:
    return [[float(text.count("alpha")), float(len(text) % 5), 1.0] for text in texts]


def do(archive: Archive, clock: FakeClock, step: tuple[str, str, str | None, str, int]) -> None:
    kind, tenant, subject, text, pick = step
    memory = archive.memory(subject, tenant=tenant)
    targets = [item.id for item in memory.items(hidden=True)] if kind in ("delete", "forget") else []
    if kind == "note":
        tier, labels = ("core" if pick % 2 else "archival"), (["x"] if pick % 3 else [])
        memory.add(Note(content=text, tier=tier, labels=tuple(labels), timestamp=clock.now))
    elif kind == "put":
        memory.put(f"k{pick % 2}", text)
    elif kind == "say":
        memory.add(muniment.Message(speaker="Anna", content=text, timestamp=clock.now))
    elif kind == "delete" and targets:
        memory.delete([targets[pick % len(targets)]], "asked")
    elif kind == "forget" and targets:
        memory.forget([targets[pick % len(targets)]])
    elif kind == "erase" and pick % 3 == 0:
        memory.erase()
    elif kind == "rebuild":
        memory.rebuild()
    elif kind == "turn":
        archive.set_fulltext(pick % 2 == 0)
    clock.advance()


def show(archive: Archive, tenant: str, query: str, options: dict[str, Any]) -> list[tuple[object, ...]]:
    defaults: dict[str, Any] = {"limit": 10, "mode": "keyword", "kinds": None, "tiers": None, "labels": None}
    defaults |= {"where": None, "session_id": None, "since": None, "until": None, "fusion": "rrf", "context": False}
    request = parse_request(query, **{**defaults, "explain": True, "ranking": PLAIN, **options})
    engine = archive._engine  # pyright: ignore[reportPrivateUsage]
    hits, _ = TenantSearcher(engine, tenant).search(request)
    return [(one.scope, one.hit.id, one.hit.score, dict(one.hit.parts)) for one in hits]


@settings(deadline=None, max_examples=40)
@given(
    steps=st.lists(STEPS, min_size=5, max_size=25),
    asked=st.lists(st.tuples(st.sampled_from(TENANTS), TEXTS, OPTIONS), min_size=1, max_size=5),
    adapter=st.sampled_from(["memory://", ":memory:"]),
    batch=st.sampled_from([1, 64]),
)
def test_results_are_bit_equal_with_and_without(
    steps: list[tuple[str, str, str | None, str, int]],
    asked: list[tuple[str, str, dict[str, Any]]],
    adapter: str,
    batch: int,
) -> None:
    clock = FakeClock()
    with (
        pytest.MonkeyPatch.context() as patch,
        muniment.open(adapter, embedder=embed, fulltext=True, clock=clock, entropy=SeededEntropy()) as archive,
    ):
        patch.setattr(tenant_search, "_BATCH", batch)
        for step in steps:
            do(archive, clock, step)
        archive.set_fulltext(True)
        assert archive.verify(deep=True)
        with_it = [show(archive, *one) for one in asked]
        terms = query_terms("alpha", archive._engine.tokenizer)  # pyright: ignore[reportPrivateUsage]
        assert archive.storage.find_text("acme", terms, version="1") is not None
        archive.set_fulltext(False)
        assert archive.storage.find_text("acme", terms, version="1") is None
        assert [show(archive, *one) for one in asked] == with_it
