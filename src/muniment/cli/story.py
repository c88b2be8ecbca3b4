"""The conversation that the demo plays: one week between a customer and the agent that sends her parcels."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

TENANT: Final = "demo"
SUBJECT: Final = "mara"
SOURCE: Final = "muniment demo"
"""Of the first event of every ledger that the demo wrote: how it knows its own archive again."""

AGENT: Final = "iris"
CUSTOMER: Final = "mara"

MONDAY: Final = datetime(2025, 6, 2, 9, 0, tzinfo=UTC)
"""A week in the past, so that what is added to the archive afterwards is younger."""
TUESDAY: Final = datetime(2025, 6, 3, tzinfo=UTC)
WEDNESDAY: Final = datetime(2025, 6, 4, 14, 0, tzinfo=UTC)
THURSDAY: Final = datetime(2025, 6, 5, tzinfo=UTC)
FRIDAY: Final = datetime(2025, 6, 6, 10, 0, tzinfo=UTC)

STEP: Final = timedelta(minutes=1)
"""Between two events of one day."""

WHERE_TO: Final = "Please send our parcels to the Berlin warehouse."
NOTED: Final = "Noted. They go to the Berlin warehouse from now on."
GATE_CODE: Final = "The gate code is 4711, if the driver comes late."
ADDRESS_KEY: Final = "delivery:address"
ADDRESS: Final = "Parcels go to the Berlin warehouse."
TERMS_NAME: Final = "terms.txt"
TERMS: Final = (
    "At a locked gate the driver waits ten minutes.\n"
    "Then the parcel goes back to the depot and is brought again on the next day."
)

MOVED: Final = "From July on we are in Potsdam. Send everything there."
NEW_ADDRESS: Final = "Parcels go to the Potsdam site from July on."
QUESTION: Final = "how does the driver get through the gate?"
ANSWER: Final = "With the code you gave me; and he waits ten minutes."

REMOVE: Final = "The lock was changed. Please remove that code."
REASON: Final = "the customer asked for it"

SECRET: Final = b"4711"
FORGED: Final = b"9999"
"""What somebody who goes around the engine writes in its place, in a copy."""
