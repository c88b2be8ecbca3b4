"""The items and uses of one ledger as plain values: what the changes of a `Projector` come to.

Source: `engine.md` E6.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from muniment.model.rows import AddItems, Change, CountUses, HideItems, ItemRow, SupersedeItem, Use


@dataclass(slots=True)
class Projection:
    """Items by seq, uses by the seq of the first version of their chain."""

    items: dict[int, ItemRow] = field(default_factory=dict[int, ItemRow])
    uses: dict[int, Use] = field(default_factory=dict[int, Use])

    def apply(self, changes: Iterable[Change]) -> None:
        """Take in changes, in the order given; those that are not of items or uses mean nothing here."""
        for change in changes:
            match change:
                case AddItems(rows):
                    self.items.update({row.seq: row for row in rows})
                case HideItems(seqs, at_seq):
                    for seq in seqs:
                        row = self.items.get(seq)
                        if row is not None and row.deleted_seq is None:
                            self.items[seq] = row._replace(deleted_seq=at_seq)
                case SupersedeItem(seq, by_seq):
                    if seq in self.items:
                        self.items[seq] = self.items[seq]._replace(superseded_seq=by_seq)
                case CountUses(uses):
                    for use in uses:
                        before = self.uses.get(use.root_seq)
                        times = use.times if before is None else before.times + use.times
                        self.uses[use.root_seq] = use._replace(times=times)
                case _:
                    pass
