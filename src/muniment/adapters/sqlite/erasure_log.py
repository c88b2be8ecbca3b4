"""What was erased, in a small file beside the archive, so that an older backup can be brought up to it.

One JSON line per erasure: the ledger's id and the ids of the events, or "whole". Nothing personal: ids are random.

Source: `engine.md` E23.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from muniment.errors import StorageUnavailableError


class ErasureLog:
    """Appends to `<archive>.erasures`."""

    def __init__(self, archive_path: str) -> None:
        self.path = Path(f"{archive_path}.erasures")

    def add(self, ledger_id: bytes, event_ids: Sequence[bytes] | None) -> None:
        """Write one erasure, durably; `None` stands for the whole ledger.

        Raises: StorageUnavailableError
        """
        events = "whole" if event_ids is None else [str(UUID(bytes=event_id)) for event_id in event_ids]
        line = json.dumps({"ledger_id": ledger_id.hex(), "events": events}) + "\n"
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StorageUnavailableError(
                f"{self.path} could not be written ({error.strerror}), so nothing was erased: a backup that is "
                "restored later would bring it back"
            ) from error
