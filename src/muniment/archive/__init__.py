"""The use cases: an archive, its tenants, the memory of one scope."""

from muniment.archive.archive import Archive
from muniment.archive.ledger import Ledger
from muniment.archive.listing import Listing, Page
from muniment.archive.memory import UNSET, Memory
from muniment.archive.opening import open_archive
from muniment.archive.standing import Changed, Standing
from muniment.archive.tenant import ScopeInfo, Tenant

__all__ = [
    "UNSET",
    "Archive",
    "Changed",
    "Ledger",
    "Listing",
    "Memory",
    "Page",
    "ScopeInfo",
    "Standing",
    "Tenant",
    "open_archive",
]
