"""The laws of search on random histories: the same on every adapter, repeatable for any past point, inside the scope.

Both archives of a history draw the same ids, salts and times, so what they answer is compared to the last bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import muniment
from muniment import Document, Message, Note, Scope
from muniment.archive import Archive, Memory
from muniment.archive.search import Searcher, SearchRequest, parse_request
from muniment.archive.tenant_search import TenantSearcher
from muniment.core.ranking import PLAIN
from muniment.errors import MunimentError
from muniment.service import ANY, UNSCOPED, MemoryObject, ServiceMemory
from muniment.testing.doubles import START, FakeClock, SeededEntropy

TENANT = "acme"
SUBJECTS: list[str | None] = ["a", "b", None]
ADAPTERS = ("memory://", ":memory:")

WORDS = ["alpha", "beta", "gamma", "delta", "the", "of", "Anna", "Bert", "café", "日本語", "!!!"]
OFTEN = ["alpha", "alpha", "alpha", "beta", *WORDS]
"""Words as they are drawn, so that most searches find something."""
TEXTS = st.lists(st.sampled_from(OFTEN), min_size=2, max_size=6).map(" ".join)
QUERIES = st.lists(st.sampled_from(OFTEN), min_size=1, max_size=3).map(" ".join)
KEYS = st.sampled_from(["k1", "k2"])
SESSIONS = st.sampled_from(["s1", "s2", None])


def embed(texts: list[str]) -> list[list[float]]:
    """Counts of words as vectors: often equal, sometimes zero."""
    return [[float(text.count(word)) for word in WORDS[:4]] for text in texts]


def open_archive(url: str, clock: FakeClock, *, embedder: Any = embed, read_audit: Any = "on") -> Archive:
    return muniment.open(url, embedder=embedder, read_audit=read_audit, clock=clock, entropy=SeededEntropy())


# --- Histories --------------------------------------------------------------------------------------------------------

Step = tuple[str, str | None, dict[str, Any]]
"""What is done, in which scope, with what."""


def steps(*kinds: str) -> st.SearchStrategy[Step]:
    arguments: dict[str, st.SearchStrategy[dict[str, Any]]] = {
        "say": st.fixed_dictionaries(
            {"speaker": st.sampled_from(["Anna", "Bert", "user"]), "content": TEXTS, "session_id": SESSIONS}
        ),
        "bring": st.fixed_dictionaries({"name": st.just("a.txt"), "text": TEXTS}),
        "note": st.fixed_dictionaries(
            {
                "content": TEXTS,
                "tier": st.sampled_from(["core", "archival", "insight"]),
                "labels": st.lists(st.sampled_from(["x", "y"]), max_size=2).map(tuple),
                "metadata": st.dictionaries(st.sampled_from(["n", "m"]), st.integers(0, 2), max_size=2),
                "summary": st.none() | TEXTS,
                "session_id": SESSIONS,
            }
        ),
        "put": st.fixed_dictionaries({"key": KEYS, "text": TEXTS}),
        "delete": st.fixed_dictionaries({"pick": st.integers(0, 50)}),
        "forget": st.fixed_dictionaries({"pick": st.integers(0, 50)}),
        "recall": st.fixed_dictionaries({"query": TEXTS}),
        "erase": st.just({}),
        "rebuild": st.just({}),
    }
    return st.sampled_from(kinds).flatmap(
        lambda kind: st.tuples(st.just(kind), st.sampled_from(["a", "a", "a", *SUBJECTS]), arguments[kind])
    )


WRITES = ("say", "say", "bring", "note", "note", "note", "put", "put", "recall", "delete")
DESTROYING = (*WRITES, "forget", "forget", "erase", "rebuild")


def histories(*kinds: str) -> st.SearchStrategy[list[Step]]:
    return st.lists(steps(*kinds), min_size=5, max_size=20)


def do(archive: Archive, step: Step, clock: FakeClock) -> None:
    """Take a step; what it has no target for is left out."""
    kind, subject, arguments = step
    memory = archive.memory(subject, tenant=TENANT)
    # The events that a caller builds draw their ids and times from the archive's sources, too.
    engine = archive._engine  # pyright: ignore[reportPrivateUsage]
    fresh: dict[str, Any] = {"id": engine.new_id(), "timestamp": clock.now}
    match kind:
        case "say":
            memory.add(Message(**fresh, **arguments))
        case "bring":
            memory.add(Document(**fresh, **arguments))
        case "note":
            memory.add(Note(**fresh, **arguments))
        case "put":
            memory.put(**arguments)
        case "recall":
            memory.recall(arguments["query"])
        case "delete" | "forget":
            targets = [item.id for item in memory.items(hidden=True)]
            if targets:
                target = targets[arguments["pick"] % len(targets)]
                memory.delete([target], "asked") if kind == "delete" else memory.forget([target])
        case "erase":
            memory.erase()
        case _:
            memory.rebuild()
    clock.advance()


# --- Searches ---------------------------------------------------------------------------------------------------------


@st.composite
def searches(draw: st.DrawFn) -> dict[str, Any]:
    """The arguments of a search, mostly without filters."""
    optional: dict[str, st.SearchStrategy[Any]] = {
        "kinds": st.lists(st.sampled_from(["message", "document", "note"]), max_size=3),
        "tiers": st.lists(st.sampled_from(["core", "archival", "insight"]), max_size=2),
        "labels": st.lists(st.sampled_from(["x", "y"]), max_size=2),
        "where": st.sampled_from(
            [{"n": 1}, {"n": {"gt": 0}}, {"not": {"m": {"exists": True}}}, {"or": [{"n": 0}, {"m": 2}]}]
        ),
        "session_id": st.sampled_from(["s1", "s2", "s3"]),
        "since": st.integers(0, 20).map(lambda number: START + timedelta(seconds=number)),
        "until": st.integers(0, 20).map(lambda number: START + timedelta(seconds=number)),
        "fusion": st.sampled_from(["convex", "rrf"]),
        "context": st.booleans(),
    }
    chosen = draw(st.sets(st.sampled_from(sorted(optional)), max_size=2)) if draw(st.booleans()) else ()
    return {
        "query": draw(QUERIES),
        "limit": draw(st.sampled_from([10, 1, 2, 3, 10, 10, 0])),
        "mode": draw(st.sampled_from(["auto", "keyword", "vector", "hybrid"])),
        **{name: draw(optional[name]) for name in sorted(chosen)},
    }


Shown = list[tuple[UUID, int, float, Mapping[str, float]]]


def show(memory: Memory, search: Mapping[str, Any], **more: Any) -> Shown:
    """The hits of a search, with everything that says how they came about."""
    hits = memory.search(**search, explain=True, **more)
    return [(hit.id, hit.seq, hit.score, dict(hit.parts)) for hit in hits]


# --- Every adapter alike ----------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    history=histories(*DESTROYING),
    wanted=st.lists(searches(), min_size=1, max_size=4),
    ask_every=st.integers(1, 6),
)
def test_the_oracle_and_sqlite_agree(history: list[Step], wanted: list[dict[str, Any]], ask_every: int) -> None:
    """Hit by hit, score by score, part by part, in every scope, between writes, deletions and erasures."""
    with ExitStack() as stack:
        clocks = [FakeClock(), FakeClock()]
        archives = [stack.enter_context(open_archive(url, clock)) for url, clock in zip(ADAPTERS, clocks, strict=True)]
        for number, step in enumerate(history, start=1):
            for archive, clock in zip(archives, clocks, strict=True):
                do(archive, step, clock)
            if number % ask_every and number != len(history):
                continue
            for search in wanted:
                for subject in SUBJECTS:
                    oracle, sqlite = [show(archive.memory(subject, tenant=TENANT), search) for archive in archives]
                    assert oracle == sqlite
                    event(f"hits: {min(len(oracle), 3)}")
        for subject in SUBJECTS:
            oracle, sqlite = [list(archive.memory(subject, tenant=TENANT).events()) for archive in archives]
            assert oracle == sqlite


@settings(max_examples=30)
@given(
    history=histories(*WRITES, "forget"),
    wanted=st.lists(searches(), min_size=1, max_size=3),
)
def test_a_scope_answers_alike_whenever_its_index_was_built(history: list[Step], wanted: list[dict[str, Any]]) -> None:
    """An index that grew with the ledger gives what one gives that was built at the end."""
    clock = FakeClock()
    with open_archive(":memory:", clock, read_audit="off") as archive:
        memories = [archive.memory(subject, tenant=TENANT) for subject in SUBJECTS]
        for step in history:
            do(archive, step, clock)
            for memory in memories:
                memory.search("alpha", mode="hybrid")
        grown = [show(memory, search) for memory in memories for search in wanted]
        drop_indexes(archive)
        assert [show(memory, search) for memory in memories for search in wanted] == grown


def drop_indexes(archive: Archive) -> None:
    """As in a process that has searched nothing yet."""
    for info in archive.tenant(TENANT).scopes():
        archive._engine.forget_ledger(bytes.fromhex(info.ledger_id))  # pyright: ignore[reportPrivateUsage]


# --- As of ------------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    history=histories(*WRITES),
    wanted=st.lists(searches(), min_size=1, max_size=3),
    adapter=st.sampled_from(ADAPTERS),
)
def test_as_of_gives_what_was_found_then(history: list[Step], wanted: list[dict[str, Any]], adapter: str) -> None:
    """At every past seq and time, what the same archive answered when it ended there."""
    clock = FakeClock()
    with open_archive(adapter, clock, read_audit="off") as archive:
        memories = [archive.memory(subject, tenant=TENANT) for subject in SUBJECTS]
        then: list[tuple[int, Memory, int, datetime, list[Shown]]] = []
        for step in history:
            at = clock.now
            do(archive, step, clock)
            memory = archive.memory(step[1], tenant=TENANT)
            then.append((len(then), memory, len(memory) - 1, at, [show(memory, search) for search in wanted]))
        for warm in (True, False):
            for _, memory, seq, at, shown in then:
                assert [show(memory, search, as_of=seq) for search in wanted] == shown
                if seq == (memory.seq_at(at) if seq >= 0 else None):
                    assert [show(memory, search, as_of=at) for search in wanted] == shown
            drop_indexes(archive)
            event(f"warm: {warm}")
        for memory in memories:
            assert all(show(memory, search, as_of=-1) == [] for search in wanted)
            newest = len(memory) - 1
            assert [show(memory, search, as_of=newest + 100) for search in wanted] == [
                show(memory, search) for search in wanted
            ]


@settings(max_examples=40)
@given(
    contents=st.lists(TEXTS, min_size=1, max_size=10),
    forgotten=st.sets(st.integers(0, 9), max_size=4),
    wanted=searches(),
    adapter=st.sampled_from(ADAPTERS),
)
def test_as_of_lacks_what_was_erased_since(
    contents: list[str], forgotten: set[int], wanted: dict[str, Any], adapter: str
) -> None:
    """The past of an archive that forgot something is that of one that never heard of it."""

    def shown(hits: Sequence[Any]) -> list[tuple[str, float]]:
        return [(hit.text, hit.score) for hit in hits]

    wanted = {name: value for name, value in wanted.items() if name not in ("since", "until")}
    with open_archive(adapter, FakeClock()) as full, open_archive(adapter, FakeClock()) as partial:
        memory, other = (archive.memory("a", tenant=TENANT) for archive in (full, partial))
        notes = [memory.remember(text) for text in contents]
        forgotten = {number for number in forgotten if number < len(notes)}
        if forgotten:
            memory.forget([notes[number].id for number in forgotten])
        for number, text in enumerate(contents):
            if number not in forgotten:
                other.remember(text)
            newest = sum(one not in forgotten for one in range(number + 1)) - 1
            assert shown(memory.search(**wanted, as_of=number)) == shown(other.search(**wanted, as_of=newest))


def test_as_of_records_nothing_and_sees_what_is_hidden_now() -> None:
    for adapter in ADAPTERS:
        with open_archive(adapter, FakeClock()) as archive:
            memory = archive.memory("a", tenant=TENANT)
            note = memory.remember("alpha one")
            memory.delete([note.id], "asked")
            memory.put("k", "alpha two")
            memory.put("k", "alpha three")
            before = len(memory)
            assert [hit.text for hit in memory.search("alpha", as_of=0)] == ["alpha one"]
            assert [hit.text for hit in memory.search("alpha", as_of=2)] == ["alpha two"]
            assert len(memory) == before
            assert [hit.text for hit in memory.search("alpha")] == ["alpha three"]
            assert len(memory) == before + 1


# --- Inside the scope -------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(
    mine=histories(*WRITES).map(lambda history: [(kind, "a", arguments) for kind, _, arguments in history]),
    others=histories(*DESTROYING).map(
        lambda history: [(kind, "b" if subject == "a" else subject, rest) for kind, subject, rest in history]
    ),
    wanted=st.lists(searches(), min_size=1, max_size=3),
)
def test_other_scopes_change_neither_order_nor_scores(
    mine: list[Step], others: list[Step], wanted: list[dict[str, Any]]
) -> None:
    clock = FakeClock()
    with open_archive(":memory:", clock, read_audit="off") as archive:
        memory = archive.memory("a", tenant=TENANT)
        for step in mine:
            do(archive, step, clock)
        alone = [show(memory, search) for search in wanted]
        for step in others:
            do(archive, step, clock)
        assert [show(memory, search) for search in wanted] == alone


@pytest.fixture(scope="module")
def crowded() -> Any:
    """1,000 items near the query in other scopes and in this one, and 5 that are meant."""
    with open_archive(":memory:", FakeClock()) as archive:
        archive.add_many(
            (Scope(TENANT, f"other-{number % 10}"), Note(content=f"alpha alpha beta {number}"))
            for number in range(1_000)
        )
        meant: list[Note] = [
            Note(content=f"alpha and much else {number}", labels=("rare",), metadata={"n": number}, session_id="rare")
            for number in range(5)
        ]
        small = archive.memory("small", tenant=TENANT).add_many(meant)
        filled = archive.memory("filled", tenant=TENANT)
        filled.add_many([Note(content=f"alpha alpha beta {number}") for number in range(1_000)])
        filled.add_many([note.model_copy(update={"tier": "insight"}) for note in meant])
        yield archive, {event.id for event in small}


FILTERS: list[dict[str, Any]] = [
    {"labels": ["rare"]},
    {"where": {"n": {"exists": True}}},
    {"where": {"n": {"ge": 0}}, "labels": ["rare"], "kinds": ["note"]},
    {"session_id": "rare"},
    {"tiers": ["insight"]},
]


@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid", "auto"])
@pytest.mark.parametrize("fusion", ["convex", "rrf"])
def test_a_scope_of_5_inside_1000_neighbours_gets_its_k(crowded: Any, mode: str, fusion: str) -> None:
    archive, meant = crowded
    memory = archive.memory("small", tenant=TENANT)
    for limit in (1, 3, 5, 10):
        found = memory.search("alpha beta", limit=limit, mode=mode, fusion=fusion)
        assert len(found) == min(limit, 5)
        assert {hit.id for hit in found} <= meant
    service = ServiceMemory(archive, TENANT)
    modes = {"keyword": "keyword_only", "vector": "vector_only"}
    assert len(service.search("alpha beta", mode=modes.get(mode, mode), scope="small")) == 5


@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
@pytest.mark.parametrize("fusion", ["convex", "rrf"])
@pytest.mark.parametrize("wanted", FILTERS, ids=lambda wanted: "+".join(wanted))
def test_a_narrow_filter_gets_its_k(crowded: Any, mode: str, fusion: str, wanted: dict[str, Any]) -> None:
    archive, meant = crowded
    memory = archive.memory("filled", tenant=TENANT)
    for limit in (1, 5, 10):
        found = memory.search("alpha beta", limit=limit, mode=mode, fusion=fusion, **wanted)
        assert len(found) == min(limit, 5)
        assert {hit.id for hit in found} <= meant


@given(
    history=histories("note", "put", "delete", "say"),
    wanted=searches(),
    narrow=st.sampled_from([{"labels": ["x"]}, {"tiers": ["core"]}, {"where": {"n": 1}}, {"kinds": ["note"]}]),
)
def test_a_filter_leaves_out_hits_and_changes_no_score(
    history: list[Step], wanted: dict[str, Any], narrow: dict[str, Any]
) -> None:
    wanted = {name: wanted[name] for name in ("query", "mode") if name in wanted}
    clock = FakeClock()
    with open_archive("memory://", clock, read_audit="off") as archive:
        for step in history:
            do(archive, step, clock)
        for subject in SUBJECTS:
            memory = archive.memory(subject, tenant=TENANT)
            everything = show(memory, {**wanted, "limit": 1000})
            filtered = show(memory, {**wanted, **narrow, "limit": 1000})
            ids = {hit[0] for hit in filtered}
            assert filtered == [hit for hit in everything if hit[0] in ids]


@settings(max_examples=30)
@given(
    notes=st.lists(st.tuples(st.sampled_from(SUBJECTS), TEXTS), min_size=1, max_size=15),
    said=st.lists(st.tuples(st.sampled_from(SUBJECTS), TEXTS), max_size=10),
    query=QUERIES,
)
def test_the_statistics_of_a_service_are_those_of_its_notes(
    notes: list[tuple[str | None, str]], said: list[tuple[str | None, str]], query: str
) -> None:
    """Messages and documents of a scope have no part in what the service finds or in its scores."""
    with open_archive("memory://", FakeClock()) as archive:
        for subject, text in notes:
            archive.memory(subject, tenant=TENANT).remember(text)
        before = [score_of_notes(archive, query, mode) for mode in ("keyword", "vector", "hybrid")]
        for subject, text in said:
            archive.memory(subject, tenant=TENANT).add(Message(speaker="Anna", content=text, session_id="s"))
            archive.memory(subject, tenant=TENANT).add(Document(name="alpha", text=text))
        assert [score_of_notes(archive, query, mode) for mode in ("keyword", "vector", "hybrid")] == before


def request_of(query: str, mode: str, limit: int = 1_000) -> SearchRequest:
    """What the service asks the engine."""
    return parse_request(
        query,
        limit=limit,
        mode=mode,
        kinds=None,
        tiers=None,
        labels=None,
        where=None,
        session_id=None,
        since=None,
        until=None,
        fusion="rrf",
        context=False,
        explain=True,
        ranking=PLAIN,
        population=frozenset({3}),
    )


def score_of_notes(archive: Archive, query: str, mode: str) -> list[list[tuple[UUID, float]]]:
    engine = archive._engine  # pyright: ignore[reportPrivateUsage]
    request = request_of(query, mode)
    return [
        [(hit.id, hit.score) for hit in Searcher(engine).search(Scope(TENANT, subject), request).hits]
        for subject in SUBJECTS
    ]


# --- Over several scopes ----------------------------------------------------------------------------------------------


@given(
    notes=st.lists(st.tuples(st.sampled_from([*SUBJECTS, "c"]), TEXTS), min_size=1, max_size=20),
    query=QUERIES,
    mode=st.sampled_from(["keyword", "vector"]),
    adapter=st.sampled_from(ADAPTERS),
)
def test_a_tenant_scores_like_one_scope_that_holds_all(
    notes: list[tuple[str | None, str]], query: str, mode: str, adapter: str
) -> None:
    """The statistics of several scopes add up to those of one."""
    with open_archive(adapter, FakeClock()) as several, open_archive("memory://", FakeClock()) as one:
        for subject, text in notes:
            several.memory(subject, tenant=TENANT).remember(text)
            one.memory("all", tenant=TENANT).remember(text)
        request = request_of(query, mode)
        hits, _ = TenantSearcher(several._engine, TENANT).search(request)  # pyright: ignore[reportPrivateUsage]
        alone = Searcher(one._engine).search(Scope(TENANT, "all"), request).hits  # pyright: ignore[reportPrivateUsage]
        assert Counter((one.hit.text, one.hit.score) for one in hits) == Counter((hit.text, hit.score) for hit in alone)
        assert [one.hit.score for one in hits] == [hit.score for hit in alone]


# --- The service ------------------------------------------------------------------------------------------------------

SCOPES = st.sampled_from(["a", "b", None])
READ_SCOPES = st.sampled_from(["a", "b", None, UNSCOPED])
METADATA = st.dictionaries(st.sampled_from(["n", "m"]), st.integers(0, 2), max_size=2)

CALLS = st.one_of(
    st.fixed_dictionaries({"call": st.just("add"), "content": TEXTS, "scope": SCOPES, "metadata": METADATA}),
    st.fixed_dictionaries({"call": st.just("add"), "content": TEXTS, "scope": SCOPES, "summary": st.none() | TEXTS}),
    st.fixed_dictionaries({"call": st.just("upsert"), "content": TEXTS, "scope": SCOPES, "ext_id": KEYS}),
    st.fixed_dictionaries({"call": st.just("update"), "content": TEXTS, "pick": st.integers(0, 20)}),
    st.fixed_dictionaries({"call": st.just("delete"), "pick": st.integers(0, 20), "erase": st.booleans()}),
    st.fixed_dictionaries({"call": st.just("delete"), "id": KEYS, "scope": SCOPES, "erase": st.booleans()}),
    st.fixed_dictionaries({"call": st.just("get"), "id": KEYS, "scope": st.sampled_from(["a", None, ANY])}),
    st.fixed_dictionaries({"call": st.just("list_all"), "scope": READ_SCOPES, "limit": st.sampled_from([None, 0, 2])}),
    st.fixed_dictionaries(
        {
            "call": st.just("search"),
            "query": QUERIES,
            "scope": READ_SCOPES,
            "limit": st.sampled_from([5, 5, 0, 1, 3]),
            "mode": st.sampled_from(["auto", "keyword_only", "vector_only", "hybrid"]),
        }
    ),
    st.fixed_dictionaries(
        {
            "call": st.just("hybrid_search"),
            "query": QUERIES | st.just(""),
            "query_vec": st.lists(st.integers(-2, 2), min_size=4, max_size=4),
            "scope": READ_SCOPES,
            "weight_fts": st.sampled_from([0.0, 1.0, 2.5]),
            "weight_vec": st.sampled_from([0.5, 1.0]),
            "rrf_k": st.sampled_from([1, 60]),
        }
    ),
    st.fixed_dictionaries({"call": st.just("render_index"), "scope": READ_SCOPES}),
)


def answer(service: ServiceMemory, known: list[MemoryObject], call: Mapping[str, Any]) -> object:
    """What a call answers, its error as its name."""
    arguments = dict(call)
    name = arguments.pop("call")
    if "pick" in arguments:
        if not known:
            return None
        chosen = known[arguments.pop("pick") % len(known)]
        if name == "update":
            return service.update(replace(chosen, **arguments))
        arguments["id"] = chosen.id
    try:
        match name:
            case "upsert":
                return service.upsert(MemoryObject(**arguments))
            case "get":
                return service.get(arguments["id"], scope=arguments["scope"])
            case "delete":
                receipt = service.delete(**arguments)
                return receipt.action, receipt.state, receipt.targets, receipt.counts, receipt.head_after
            case _:
                return getattr(service, name)(**arguments)
    except MunimentError as error:
        return type(error).__name__


@settings(max_examples=40)
@given(calls=st.lists(CALLS, min_size=5, max_size=25))
def test_a_service_answers_alike_on_every_adapter(calls: list[dict[str, Any]]) -> None:
    """Object by object, counters and times included, and with equal ledgers at the end."""
    with ExitStack() as stack:
        clocks = [FakeClock(), FakeClock()]
        archives = [stack.enter_context(open_archive(url, clock)) for url, clock in zip(ADAPTERS, clocks, strict=True)]
        oracle, sqlite = [stack.enter_context(closing(ServiceMemory(archive, TENANT))) for archive in archives]
        known: list[MemoryObject] = []
        for call in calls:
            expected = answer(oracle, known, call)
            assert answer(sqlite, known, call) == expected
            event(f"{call['call']}: {type(expected).__name__}")
            known += [expected] if isinstance(expected, MemoryObject) else []
            for clock in clocks:
                clock.advance()
        for subject in SUBJECTS:
            first, second = [list(archive.memory(subject, tenant=TENANT).events()) for archive in archives]
            assert first == second


@settings(max_examples=40)
@given(calls=st.lists(CALLS, min_size=5, max_size=25), adapter=st.sampled_from(ADAPTERS))
def test_use_is_what_the_ledger_says(calls: list[dict[str, Any]], adapter: str) -> None:
    """Counters as a naive count of the Recalls gives them, before and after a rebuild; reads return them (S12)."""
    clock = FakeClock()
    with open_archive(adapter, clock) as archive:
        service = ServiceMemory(archive, TENANT)
        known: list[MemoryObject] = []
        for call in calls:
            found = answer(service, known, call)
            known += [found] if isinstance(found, MemoryObject) else []
            if isinstance(found, list):
                assert found == [service.get(memory.id, scope=memory.scope) for memory in found]
            clock.advance()
        for again in range(2):
            listed = service.render_index(max_entries=None).splitlines()
            for subject in SUBJECTS:
                memory = archive.memory(subject, tenant=TENANT)
                counted = count_uses(memory)
                for item in memory.items(kinds=["note"]):
                    shown = service.get(str(item.id), scope=subject)
                    assert shown is not None
                    assert (shown.usage_count, shown.last_used_at) == counted.get(item.root_seq, (0, None))
            assert len(listed) == sum(len(archive.memory(one, tenant=TENANT).items(kinds=["note"])) for one in SUBJECTS)
            if not again:
                archive.rebuild()


def count_uses(memory: Memory) -> dict[int, tuple[int, float]]:
    """How often each chain of versions is named by the Recalls there are, and when last."""
    roots = {item.id: item.root_seq for item in memory.items(hidden=True)}
    counted: dict[int, tuple[int, float]] = {}
    for recall in memory.events(kind="recall"):
        if isinstance(recall, muniment.Recall):
            for one in recall.recalled:
                if one in roots:
                    times, _ = counted.get(roots[one], (0, 0.0))
                    counted[roots[one]] = (times + 1, recall.timestamp.timestamp())
    return counted
