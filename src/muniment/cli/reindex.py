"""`muniment reindex`: a vector for every item, of the embedder's model."""

from __future__ import annotations

from muniment.archive.vectors import CURRENT_MODEL
from muniment.cli.embedding import EmbedderOption, open_with
from muniment.cli.options import ArchiveOption, JsonOption
from muniment.cli.output import Output
from muniment.cli.text import count_of
from muniment.errors import UsageError


def reindex(archive: ArchiveOption = None, embedder: EmbedderOption = None, as_json: JsonOption = False) -> None:
    """Give every item a vector of the embedder's model.

    Until it ends, searches go on with the model from before. When it was cut short, run it again: it goes on where it
    was. The plain line has the word embedded, the number of items that had no vector yet, and the model's name.
    """
    out = Output(as_json=as_json)
    if embedder is None:
        raise UsageError("which embedder? give --embedder local, minilm or MODULE:NAME")
    with open_with(archive, embedder) as opened, out.progress() as progress:
        made = opened.reindex(
            progress=lambda done, total: progress(done, total, f"{done:,} of {count_of(total, 'item')}")
        )
        current = opened.storage.find_settings()[CURRENT_MODEL]
        model = next(row for row in opened.storage.find_models() if str(row.model_no) == current)
    if as_json:
        out.json({"num_embedded": made, "model": model.name, "dimension": model.dimension})
    elif out.watched:
        out.line(f"made {count_of(made, 'vector')} of {model.name} ({model.dimension} dimensions)")
    else:
        out.record("embedded", made, model.name, model.dimension)
