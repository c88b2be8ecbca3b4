"""`muniment stats`: how much an archive holds."""

from __future__ import annotations

from muniment.cli.opening import open_existing
from muniment.cli.options import ArchiveOption, JsonOption
from muniment.cli.output import Output
from muniment.cli.text import size_of


def stats(archive: ArchiveOption = None, as_json: JsonOption = False) -> None:
    """Count what the archive holds.

    All tenants are counted. Contents are the events that were not erased.
    """
    out = Output(as_json=as_json)
    with open_existing(archive) as opened:
        counts = opened.stats()._asdict()
        location = opened.location
    if as_json:
        out.json({"archive": location, **counts})
        return
    for name, number in {"archive": location, **counts}.items():
        if not out.watched:
            out.record(name, number)
        else:
            out.line((f"{name.removesuffix('_bytes'):<9}", "dim"), _shown(name, number))


def _shown(name: str, value: int | str) -> str:
    if isinstance(value, str):
        return value
    return size_of(value) if name == "size_bytes" else f"{value:,}"
