"""The week that the demo plays: each event recorded, and shown as it is stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from muniment.archive import Memory
from muniment.cli import story
from muniment.cli.output import Output
from muniment.cli.text import one_line, text_of
from muniment.core.canonical import to_us
from muniment.model.event import Deletion, Document, Event, Message, Note, Recall

_TEXT_WIDTH: Final = 62
_STYLES: Final = {"recall": "yellow", "deletion": "red"}
_LABELS: Final = {"recall": "READ", "deletion": "DELETE"}


class Clock:
    """The time of the story: the demo plays a week in a moment."""

    def __init__(self) -> None:
        self.now = story.MONDAY

    def __call__(self) -> int:
        return to_us(self.now)

    def begin(self, day: datetime) -> None:
        self.now = day

    def step(self) -> datetime:
        """The time of the next event."""
        self.now += story.STEP
        return self.now


@dataclass
class Week:
    """Records the story and shows each event as it is stored."""

    out: Output
    memory: Memory
    clock: Clock
    session: str = ""

    def play(self) -> None:
        self._monday()
        self._wednesday()
        self._friday()

    def _monday(self) -> None:
        self._begin("MONDAY", story.MONDAY, "what is said, learned and brought is recorded, event by event")
        self._say(story.CUSTOMER, story.WHERE_TO)
        self._say(story.AGENT, story.NOTED)
        self._say(story.CUSTOMER, story.GATE_CODE)
        self._put(story.ADDRESS)
        document = Document(
            name=story.TERMS_NAME, text=story.TERMS, timestamp=self.clock.step(), session_id="monday", source="upload"
        )
        self._show(self.memory.add(document))

    def _wednesday(self) -> None:
        self._begin("WEDNESDAY", story.WEDNESDAY, "and what is read: searching and recording it are one act")
        self._say(story.CUSTOMER, story.MOVED)
        self._put(story.NEW_ADDRESS)
        read = self._read()
        self._say(story.AGENT, story.ANSWER, read)

    def _friday(self) -> None:
        self._begin("FRIDAY", story.FRIDAY, "what is deleted is out of reach of every read")
        self._say(story.CUSTOMER, story.REMOVE)
        code = next(item for item in self.memory.replay().messages if item.content == story.GATE_CODE)
        self.clock.step()
        self._show(
            self.memory.delete(
                [code.id], story.REASON, requested_by=story.CUSTOMER, actor=story.AGENT, session_id="friday"
            )
        )
        self._read()

    def _begin(self, name: str, day: datetime, lesson: str) -> None:
        self.clock.begin(day)
        self.session = name.lower()
        self.out.line()
        self.out.line((f"{name:<11}", "bold"), (lesson, "italic"))

    def _say(self, speaker: str, text: str, read: Recall | None = None) -> None:
        message = Message(
            speaker=speaker,
            content=text,
            timestamp=self.clock.step(),
            session_id=self.session,
            source=story.SOURCE,
            actor=story.AGENT if speaker == story.AGENT else None,
            recall_id=None if read is None else read.id,
        )
        self._show(self.memory.add(message))

    def _put(self, text: str) -> None:
        self.clock.step()
        self._show(
            self.memory.put(
                story.ADDRESS_KEY,
                text,
                tier="core",
                labels=["delivery"],
                session_id=self.session,
                source=story.SOURCE,
                actor=story.AGENT,
            )
        )

    def _read(self) -> Recall:
        """What a model is given for the question, and the event that says so: one act of the engine."""
        self.clock.step()
        recall, _ = self.memory.recall(
            story.QUESTION, limit=3, session_id=self.session, source=story.SOURCE, actor=story.AGENT
        )
        self._show(recall)
        return recall

    def _show(self, event: Event) -> None:
        style = _STYLES.get(event.kind, "")
        text = cut(self._text(event), _TEXT_WIDTH)
        self.out.line((f"{event.seq:>4}", "cyan"), f"  {_label(event):<10}", (text, style))

    def _text(self, event: Event) -> str:
        match event:
            case Recall():
                return f'"{event.query}" gave {self._seqs(event.recalled)}'
            case Deletion():
                return f"hides {self._seqs(event.targets)}, because {event.reason}"
            case Note() if event.supersedes is not None:
                return f"{event.content} (replaces {self._seqs([event.supersedes])})"
            case Document():
                return f"{event.name}: {event.text}"
            case _:
                return text_of(event)

    def _seqs(self, ids: Iterable[UUID]) -> str:
        events = [self.memory.get(event_id) for event_id in ids]
        return ", ".join(str(event.seq) for event in events if event is not None)


def _label(event: Event) -> str:
    return event.speaker if isinstance(event, Message) else _LABELS.get(event.kind, event.kind)


def cut(text: str, width: int) -> str:
    """The text on one line of at most that width."""
    text = one_line(text.replace("\n", " "))
    return text if len(text) <= width else text[: width - 1] + "…"
