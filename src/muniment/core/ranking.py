"""What a search asks and answers, as values: query, filter, ranking, statistics, hits, and the constants of ranking.

Every constant was chosen on LoCoMo conversations 1-5 and BEAM chats 1-10 and then checked on the others; the numbers
beside them are recall@10 on the former, remeasured by `bench/retrieval.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from muniment.core.fuse import RANK_DAMPING, check_weights
from muniment.core.text import TermHasher, Tokenizer, asker_names, possible_names, query_terms, speaks_to_another
from muniment.errors import UsageError
from muniment.model.rows import ItemRow

WEIGHTS_CONVEX: Final = (0.4, 0.6)
"""Keywords and vectors. With 0.3 or 0.5 for keywords every set and model stays within 0.5 %."""
WEIGHTS_RECIPROCAL: Final = (1.0, 1.0)
"""Source: contract law S9. On LoCoMo 1.2 % below the convex fusion with a static model, 1.6 % with a MiniLM."""

LENT_KEYWORDS_SHORT: Final = (0.4, 0.3, 0.2, 0.1)
LENT_VECTORS_SHORT: Final = (0.25, 0.1)
"""Shares that a turn is lent of the turns 1, 2, … before and after it, where texts are short. LoCoMo: 0.65 without,
0.76 with for keywords, 0.75 and 0.79 with a MiniLM. Words are lent wider than meaning: an answer seldom repeats the
words of its question, while its vector lies near it already."""
LENT_KEYWORDS_LONG: Final = (0.4,)
LENT_VECTORS_LONG: Final = (0.2,)
"""The same where texts are long and the turn after next is another topic. BEAM: 0.50 without, 0.54 with for keywords,
0.59 and 0.62 with a static model; lending over two turns or more loses 1 %."""

LENDING_TURNS_MIN: Final = 30
"""Turns a scope must hold before they lend by default. Of fewer, ten hits are a third anyway, and turns that hold no
word of the query would only stand among them."""

SPEAKER_BONUS: Final = 0.3
"""What turns of the one speaker meant get, where the best score of a leg is 1. Keywords: LoCoMo 0.72 without, 0.76
with, BEAM 0.52 and 0.54. Anything from 0.2 to 0.4 does nearly as well."""

ADDRESSED_SHARE: Final = 0.5
"""The share of the bonus that the asker's own turns get where the question says `you` too, as in "what did you tell
me?": what is asked for may stand in a turn of either. BEAM with a static model: 0.59 without, 0.62 with half of it,
0.61 with all."""

SPEAKER_TURNS_MIN: Final = 10
"""Turns of a speaker from which on a word that is in all of them counts as the name. A word in half of somebody's turns
is in ten in a row once in a thousand times; and one that is in all of them tells no turn from another anyway."""

LEG_FACTOR: Final = 3
"""Reciprocal fusion takes this many times the limit from each leg. Source: contract law S9."""


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for: terms, a vector, or both."""

    terms: tuple[int, ...] = ()
    """The hashes of `query_terms`, in their order."""
    vector: bytes | None = None
    """The vector, quantised as the stored ones are."""
    names: tuple[int, ...] = ()
    """Those terms that can be a speaker's name."""
    asker: tuple[int, ...] = ()
    """What a speaker is called who asks in the first person; empty where the query does not."""
    speaks_to_another: bool = False
    """Whether the query says `you`."""


def build_query(text: str, tokenizer: Tokenizer, hasher: TermHasher, vector: bytes | None = None) -> Query:
    """The query of a text, in the hashes of one scope."""
    terms = query_terms(text, tokenizer)
    return Query(
        hasher.numbers_of(terms),
        vector,
        hasher.numbers_of(possible_names(terms)),
        hasher.numbers_of(asker_names(text, tokenizer)),
        speaks_to_another(text, tokenizer),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which items may be hits. Every condition given must hold; an empty collection lets nothing through."""

    kinds: Collection[int] | None = None
    tiers: Collection[int] | None = None
    session: int | None = None
    since_us: int | None = None
    """Inclusive."""
    until_us: int | None = None
    """Exclusive: intervals are half-open."""
    seqs: Collection[int] | None = None
    """The seqs that passed what an index knows nothing of: labels, metadata."""

    def admits(self, row: ItemRow) -> bool:
        """Whether that one item passes."""
        return (
            (self.kinds is None or row.kind in self.kinds)
            and (self.tiers is None or row.tier in self.tiers)
            and (self.session is None or row.session_hash == self.session)
            and (self.since_us is None or row.timestamp_us >= self.since_us)
            and (self.until_us is None or row.timestamp_us < self.until_us)
            and (self.seqs is None or row.seq in self.seqs)
        )


EVERYTHING: Final = Filter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """How hits are scored; the defaults adapt to the scope.

    Raises: UsageError for weights or a damping that mean nothing.
    """

    fusion: Literal["convex", "rrf"] = "convex"
    weights: tuple[float, float] | None = None
    """Of keywords and vectors; None for the defaults of the fusion. A leg of weight 0 gives nothing."""
    damping: int = RANK_DAMPING
    """`k` of reciprocal rank fusion."""
    context: bool | None = None
    """Whether turns lend. None: where there are enough of them, and as far as suits their length. True: always, and as
    far as in short texts."""
    speakers: bool = True
    """Whether turns of the speaker whom the query means are preferred."""

    def __post_init__(self) -> None:
        if self.weights is not None:
            check_weights(self.weights, 2)
        if self.damping < 1:
            raise UsageError(f"k must be 1 or more, not {self.damping}")

    @property
    def leg_weights(self) -> tuple[float, float]:
        """The weights given, or the defaults of the fusion."""
        return self.weights or (WEIGHTS_CONVEX if self.fusion == "convex" else WEIGHTS_RECIPROCAL)


ADAPTIVE: Final = Ranking()
PLAIN: Final = Ranking(fusion="rrf", context=False, speakers=False)
"""What contract laws S8 and S9 fix: BM25 and cosine alone, fused by reciprocal rank."""


class Statistics(NamedTuple):
    """What BM25 needs to know of a population of texts: sums, so that those of several scopes add up."""

    documents: int
    length: int
    """All their terms together."""
    holding: tuple[int, ...]
    """Of each term of a query, how many of the texts hold it."""

    def plus(self, other: Statistics) -> Statistics:
        """The statistics of both populations together, for the same query."""
        holding = tuple(mine + theirs for mine, theirs in zip(self.holding, other.holding, strict=True))
        return Statistics(self.documents + other.documents, self.length + other.length, holding)


class Found(NamedTuple):
    """A hit: its seq, its score, and what each step gave to the score; the parts sum up to it.

    Parts: `keyword`, `vector`: its own words and meaning; `keyword_context`, `vector_context`: lent by its neighbours;
    `speaker`: the bonus. A part of 0 is left out.
    """

    seq: int
    score: float
    parts: Mapping[str, float]
