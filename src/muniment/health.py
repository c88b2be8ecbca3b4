"""What is wrong with the memories of a tenant, short of being damaged: what one would tidy up.

An auditor's look: nothing is recorded and nothing changed. The time comes in as an argument.

```python
from datetime import UTC, datetime

import muniment
from muniment.health import examine

with muniment.open(":memory:") as archive:
    memory = archive.memory("anna", tenant="acme")
    memory.remember("the card is 4111 1111 1111 1111")
    report = examine(archive, "acme", now=datetime.now(UTC))
assert [(finding.kind, finding.detail) for finding in report.findings] == [
    ("secret", "card number in content, characters 12 to 31")
]
```
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal, cast
from uuid import UUID

from pydantic import JsonValue

from muniment.adapters.tokenizer import tokenize
from muniment.archive import Archive, Memory
from muniment.core.secrets import find_secrets
from muniment.core.similar import find_similar
from muniment.core.text import analyse, fold
from muniment.errors import UsageError
from muniment.model.event import Document, Message, Note, Recall, format_instant, to_utc
from muniment.model.item import Item
from muniment.model.scope import Scope

__all__ = ["KINDS", "URGENT", "Finding", "FindingKind", "HealthReport", "Thresholds", "examine"]

FindingKind = Literal["secret", "expired", "duplicate", "near_duplicate", "never_recalled", "stale", "oversize"]

KINDS: Final[tuple[FindingKind, ...]] = (
    "secret",
    "expired",
    "duplicate",
    "near_duplicate",
    "never_recalled",
    "stale",
    "oversize",
)
URGENT: Final[frozenset[FindingKind]] = frozenset({"secret", "expired"})
"""What should not be there at all; the others are for whoever tidies up."""

FINDINGS_KEPT: Final = 1_000
"""Of each kind; the counts say how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """From where on something is worth a word."""

    unused_after: timedelta = timedelta(days=30)
    """A note or document that was never handed out since it was recorded so long ago."""
    stale_after: timedelta = timedelta(days=180)
    """One that was, but not for so long."""
    note_chars_max: int = 4_000
    """A note or message above fills a prompt by itself."""
    document_chars_max: int = 200_000
    similarity_min: float = 0.75
    """The share of words and pairs of words that two texts have in common."""

    def __post_init__(self) -> None:
        if not 0 < self.similarity_min <= 1:
            raise UsageError(f"similarity_min is above 0 and at most 1, not {self.similarity_min}")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing worth a look; it never holds a part of the text."""

    kind: FindingKind
    scope: Scope
    seq: int
    event_id: UUID
    detail: str
    other_seq: int | None = None
    """Of a duplicate: the earlier one."""

    def to_json(self) -> JsonValue:
        return {
            "kind": self.kind,
            "tenant": self.scope.tenant,
            "subject": self.scope.subject,
            "seq": self.seq,
            "id": str(self.event_id),
            "detail": self.detail,
            "other_seq": self.other_seq,
        }


@dataclass(frozen=True, slots=True)
class HealthReport:
    """The health of a tenant's memories; `bool()` says whether nothing urgent was found."""

    tenant: str
    examined_at: datetime
    """The time that was given."""
    num_scopes: int
    num_items: int
    counts: Mapping[FindingKind, int]
    """How many findings of each kind there are."""
    findings: Sequence[Finding]
    """By kind, then in the order of the scopes and ledgers; at most 1,000 of a kind."""

    def __bool__(self) -> bool:
        return not any(self.counts[kind] for kind in URGENT)

    def to_json(self) -> dict[str, JsonValue]:
        return {
            "ok": bool(self),
            "tenant": self.tenant,
            "examined_at": format_instant(self.examined_at),
            "num_scopes": self.num_scopes,
            "num_items": self.num_items,
            "counts": {kind: self.counts[kind] for kind in KINDS},
            "findings": [finding.to_json() for finding in self.findings],
        }


def examine(
    archive: Archive,
    tenant: str,
    *,
    now: datetime,
    only: Scope | None = None,
    thresholds: Thresholds | None = None,
) -> HealthReport:
    """Look through all memories of a tenant, or of one of its scopes, for what one would tidy up.

    - secret: something that looks like a key, a token, a password or a card number; also in what was deleted or
      superseded, and in the queries of reads, for the ledger still holds them: `forget` destroys them;
    - expired: `retain_until` has passed, and the content is still there: `sweep` enforces it;
    - duplicate, near_duplicate: a visible note or document that says the same as an earlier one of its scope;
    - never_recalled, stale: a visible note or document that no read handed out, or none for long;
    - oversize: a visible item that fills a prompt by itself.

    Messages are what was said: that somebody repeats himself is nothing to tidy up.

    Raises: UsageError for a naive time, or for a scope of another tenant.
    Cost:   reads all content, about 50 µs an item; memory for the notes and documents of one scope.
    """
    if now.utcoffset() is None:
        raise UsageError("now is a time with an offset, not a naive one")
    if only is not None and only.tenant != tenant:
        raise UsageError(f"the scope {only} is not one of tenant {tenant!r}")
    examination = _Examination(to_utc(now), thresholds or Thresholds())
    scopes = [info.scope for info in archive.tenant(tenant).scopes() if only in (None, info.scope)]
    for scope in scopes:
        if scope is not None:
            examination.add(archive.memory(scope.subject, tenant=tenant), scope)
    return HealthReport(
        tenant=tenant,
        examined_at=examination.now,
        num_scopes=len(scopes),
        num_items=examination.num_items,
        counts={kind: examination.counts[kind] for kind in KINDS},
        findings=tuple(finding for kind in KINDS for finding in examination.findings[kind]),
    )


def _no_findings() -> dict[FindingKind, list[Finding]]:
    return {kind: [] for kind in KINDS}


@dataclass
class _Examination:
    """What was found so far."""

    now: datetime
    thresholds: Thresholds
    num_items: int = 0
    counts: Counter[FindingKind] = field(default_factory=Counter["FindingKind"])
    findings: dict[FindingKind, list[Finding]] = field(default_factory=_no_findings)

    def add(self, memory: Memory, scope: Scope) -> None:
        """Go through one scope."""
        kept: list[Item] = []
        for item in memory.items(hidden=True):
            self.num_items += 1
            for finding in self._examine_item(item, scope):
                self._keep(finding)
            if item.visible and not isinstance(item.event, Message):
                kept.append(item)
        for event in memory.events(kind="recall"):
            if isinstance(event, Recall):
                for detail in _secrets_of({"query": event.query}):
                    self._keep(Finding("secret", scope, _seq(event.seq), event.id, detail))
        for finding in _find_repeated(kept, scope, self.thresholds.similarity_min):
            self._keep(finding)

    def _keep(self, finding: Finding) -> None:
        self.counts[finding.kind] += 1
        if len(self.findings[finding.kind]) < FINDINGS_KEPT:
            self.findings[finding.kind].append(finding)

    def _examine_item(self, item: Item, scope: Scope) -> Iterator[Finding]:
        def found(kind: FindingKind, detail: str) -> Finding:
            return Finding(kind, scope, item.seq, item.id, detail)

        hidden = "" if item.visible else " (hidden)"
        yield from (found("secret", detail + hidden) for detail in _secrets_of(_texts_of(item)))
        until = item.event.retain_until
        if until is not None and until <= self.now:
            yield found("expired", f"was to be kept until {format_instant(until)}{hidden}")
        if not item.visible:
            return
        limit = self._chars_max(item)
        if len(item.text) > limit:
            yield found("oversize", f"{len(item.text):,} characters, more than {limit:,}")
        if not isinstance(item.event, Message):
            yield from (found(kind, detail) for kind, detail in self._examine_use(item))

    def _examine_use(self, item: Item) -> Iterator[tuple[FindingKind, str]]:
        recorded = item.event.recorded_at or item.event.timestamp
        if item.last_used_at is None:
            if recorded <= self.now - self.thresholds.unused_after:
                yield "never_recalled", f"recorded {(self.now - recorded).days:,} days ago"
        elif max(item.last_used_at, recorded) <= self.now - self.thresholds.stale_after:
            days = (self.now - item.last_used_at).days
            yield "stale", f"handed out {item.usage_count:,} times, last {days:,} days ago"

    def _chars_max(self, item: Item) -> int:
        is_document = isinstance(item.event, Document)
        return self.thresholds.document_chars_max if is_document else self.thresholds.note_chars_max


# --- Secrets ----------------------------------------------------------------------------------------------------------


def _texts_of(item: Item) -> dict[str, str]:
    """Every text of an item that somebody chose, by the name of its field."""
    event = item.event
    texts = {"content" if not isinstance(event, Document) else "text": item.text}
    if isinstance(event, Document):
        texts["name"] = event.name
    if isinstance(event, Note):
        texts |= {"summary": event.summary or "", "key": event.key or "", "labels": "\n".join(event.labels)}
        texts |= dict(_flatten("metadata", event.metadata))
    return texts


def _flatten(place: str, value: object) -> Iterator[tuple[str, str]]:
    """The texts in a JSON value, by place; a name beside its text, for `token: …` is told by both."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for name, inner in cast("Mapping[str, object]", value).items():
            if isinstance(inner, str):
                yield f"{place}.{name}", f"{name}: {inner}"
            else:
                yield from _flatten(f"{place}.{name}", inner)
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(cast("Sequence[object]", value)):
            yield from _flatten(f"{place}[{number}]", inner)


def _secrets_of(texts: Mapping[str, str]) -> Iterator[str]:
    """Kind and place of what looks like a secret. The name of a metadata field may be one itself, so it is left out."""
    for place, text in texts.items():
        where = "metadata" if place.startswith("metadata") else place
        for secret in find_secrets(text):
            yield f"{secret.kind} in {where}" + (
                "" if where == "metadata" else f", characters {secret.start} to {secret.end}"
            )


# --- Duplicates -------------------------------------------------------------------------------------------------------


def _find_repeated(items: Sequence[Item], scope: Scope, least: float) -> Iterator[Finding]:
    """What says the same as an earlier item, or nearly so; each item once."""
    first: dict[tuple[str, str], Item] = {}
    different: list[Item] = []
    for item in items:
        earlier = first.setdefault((item.event.kind, " ".join(fold(item.text).split())), item)
        if earlier is item:
            different.append(item)
        else:
            yield Finding("duplicate", scope, item.seq, item.id, f"says the same as {earlier.seq}", earlier.seq)
    terms = [analyse(item.text, tokenize) for item in different]
    for later, before, share in find_similar(terms, least):
        item, earlier = different[later], different[before]
        detail = f"{share:.0%} of it is in {earlier.seq} too"
        yield Finding("near_duplicate", scope, item.seq, item.id, detail, earlier.seq)


def _seq(seq: int | None) -> int:
    return -1 if seq is None else seq
