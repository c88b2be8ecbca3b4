"""A store as JSON and as YAML text: what is written, what is accepted, what is refused (P1 to P3, P21)."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml

from muniment.errors import UsageError
from muniment.portable import MemoryEntry, MemoryStore
from muniment.portable.yaml_text import _Reader  # pyright: ignore[reportPrivateUsage]

STORE = MemoryStore(
    [MemoryEntry("é東🚀", created_at="2026-06-09T20:00:00Z", tags=("a", "b")), MemoryEntry("x", tags=())]
)
ODD_TEXTS = [
    *(
        "yes",
        "no",
        "null",
        "~",
        "3",
        "0x1f",
        "1e3",
        ".inf",
        "=",
        "<<",
        "2026-06-09",
        "2026-06-09T20:00:00Z",
        "12:30:45",
    ),
    *("- a", "a: b", "# c", "[", "{", "&a", "*a", "!t", "%d", "@", "`", "'", '"', "\\", "? q", "|", ">", "--- ", "..."),
    *("", " ", " a ", "\ta\t", "a\n", "\na", "a\n\nb", "a\r\nb", "\r", "\v\f", "\x00", "\x01\x1b\x1f", "\x7f\x80\x9f"),
    *(
        "\x85",
        "\xa0",
        "\xad",
        "\u2028",
        "\u2029",
        "\ufeff",
        "a\ufeff",
        "\ufffe\uffff",
        "\U0001f680",
        "\U0010ffff",
        "e\u0301",
    ),
    "x" * 5000 + " " + "y" * 5000,
]


class TestJson:
    def test_non_ascii_stands_as_it_is(self):
        text = STORE.to_json()
        assert "é東🚀" in text
        assert text.startswith('{\n  "entries": [\n')
        assert "\n" not in STORE.to_json(indent=None)
        assert json.loads(text) == STORE.save()

    @pytest.mark.parametrize("text", ODD_TEXTS)
    def test_any_text_survives(self, text: str):
        store = MemoryStore([MemoryEntry(text, created_at=text, tags=(text,))])
        assert MemoryStore.from_json(store.to_json()) == store
        assert MemoryStore.from_json(store.to_json(indent=None)) == store

    @pytest.mark.parametrize(
        ("text", "place"),
        [
            ("", "store: not JSON"),
            ('{"entries": [', "store: not JSON"),
            ('{"entries": []} x', "store: not JSON"),
            ('{"more": NaN}', "store: not JSON: NaN"),
            ('{"more": -Infinity}', "store: not JSON"),
            ('{"more": ' + "9" * 5000 + "}", "store: not JSON"),
            ("[" * 100_000, "store: not JSON"),
            ("\ufeff{}", "store: not JSON"),
            ("3", "store: must be a mapping"),
            ('{"entries": [], "entries": []}', "entries: is given twice"),
            ('{"entries": [{}, {"tags": [], "content": "a", "content": "b"}]}', "entries[1].content: is given twice"),
            ('{"more": {"a": 1, "a": 2}}', "a: is given twice"),
            ('{"entries": [{"category": "semantic"}]}', "entries[0].category: "),
            ('{"entries": [{"content": "\\ud800"}]}', "entries[0].content: "),
        ],
    )
    def test_refused(self, text: str, place: str):
        with pytest.raises(UsageError) as raised:
            MemoryStore.from_json(text)
        assert str(raised.value).startswith(place)

    @pytest.mark.parametrize("text", [b"{}", None, 3])
    def test_only_text_is_read(self, text: object):
        with pytest.raises(UsageError, match=r"^store: "):
            MemoryStore.from_json(text)  # pyright: ignore[reportArgumentType]
        with pytest.raises(UsageError, match=r"^store: "):
            MemoryStore.from_yaml(text)  # pyright: ignore[reportArgumentType]


class TestYaml:
    def test_form(self):
        assert STORE.to_yaml() == (
            'entries:\n- content: "é東🚀"\n  category: core\n  createdAt: "2026-06-09T20:00:00Z"\n  tags: ["a", "b"]\n'
            '- content: "x"\n  category: core\n  tags: []\n'
        )
        assert MemoryStore().to_yaml() == "entries: []\n"

    @pytest.mark.parametrize("loader", [yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)])
    @pytest.mark.parametrize("text", ODD_TEXTS)
    def test_any_text_survives_and_any_reader_agrees(self, text: str, loader: type[yaml.SafeLoader]):
        store = MemoryStore([MemoryEntry(text, created_at=text, tags=(text, text))])
        assert MemoryStore.from_yaml(store.to_yaml()) == store
        assert yaml.load(store.to_yaml(), Loader=loader) == store.save()  # noqa: S506 (both are safe loaders)

    def test_files_of_other_writers(self):
        for style in (None, True, False):
            text = yaml.safe_dump(STORE.save(), default_flow_style=style, allow_unicode=True, sort_keys=True)
            assert MemoryStore.from_yaml(text) == STORE

    def test_unquoted_time_is_text(self):
        text = "entries:\n- content: a\n  createdAt: 2026-06-09T20:00:00Z\n  tags: [2026-06-09, =, a b]\n"
        entry = MemoryEntry("a", created_at="2026-06-09T20:00:00Z", tags=("2026-06-09", "=", "a b"))
        assert MemoryStore.from_yaml(text) == MemoryStore([entry])

    def test_json_is_yaml(self):
        assert MemoryStore.from_yaml(STORE.to_json()) == STORE

    def test_defaults_comments_blocks_and_nulls(self):
        text = "# mine\nmore: {a: [1, 2.5, yes, ~]}\nentries:\n- {}\n- content: |\n    two\n    lines\n  tags: ~\n"
        assert MemoryStore.from_yaml(text) == MemoryStore([MemoryEntry(), MemoryEntry("two\nlines\n")])
        assert MemoryStore.from_yaml("more: 1") == MemoryStore()

    @pytest.mark.parametrize(
        ("text", "place"),
        [
            ("", "store: must be a mapping, not null"),
            ("just text", "store: must be a mapping, not str"),
            ("- a", "store: must be a mapping, not list"),
            ("entries: [", "store: not YAML: "),
            ("entries: []\n---\nentries: []", "store: not accepted YAML at line 2, column 1: a second document"),
            ("a: \x00", "store: not YAML: "),
            ("a: \ud800", "store: not YAML: "),
            ("entries: &a [*a]", "store: not accepted YAML at line 1, column 14: an alias"),
            ("entries:\n- &e {content: a}\n- *e", "store: not accepted YAML at line 3, column 3: an alias"),
            ("entries:\n- {<<: {content: a}}", "store: not accepted YAML at line 2, column 4: a merge key"),
            ("entries: !!python/object:os.system []", "store: not accepted YAML at line 1"),
            ("entries: !!set {a}", "store: not accepted YAML at line 1"),
            ("entries: [{content: !secret a}]", "store: not accepted YAML at line 1"),
            ("more: !!binary YQ==", "store: not accepted YAML at line 1"),
            ("more: !!int abc", "store: not accepted YAML at line 1"),
            ("more: !!bool abc", "store: not accepted YAML at line 1"),
            ("more: " + "9" * 5000, "store: not accepted YAML at line 1"),
            ("? [a]\n: b", "store: not accepted YAML at line 1, column 3: a key that is not a scalar"),
            ("[" * 500, "store: not accepted YAML at line 1, column 65: collections nested"),
            ("entries: []\nentries: []", "entries: is given twice"),
            ("entries:\n- content: a\n- {content: a, tags: [], content: b}", "entries[1].content: is given twice"),
            ("entries:\n- content: 3", "entries[0].content: must be text, not int"),
            ("entries:\n- content: yes", "entries[0].content: must be text, not bool"),
            ("entries:\n- content: 1.5", "entries[0].content: must be text, not float"),
            ("entries:\n- content:", "entries[0].content: must be text, not null"),
            ("entries:\n- tags: [a, off]", "entries[0].tags[1]: must be text, not bool"),
            ("entries:\n- tags: a", "entries[0].tags: must be a list of texts, not str"),
            ("entries:\n- category: Core", "entries[0].category: "),
        ],
    )
    def test_refused(self, text: str, place: str):
        with pytest.raises(UsageError) as raised:
            MemoryStore.from_yaml(text)
        assert str(raised.value).startswith(place)

    def test_explicit_tags_of_the_core_are_read(self):
        text = "!!map {entries: !!seq [{content: !!str 3, createdAt: !!null '', category: ! core}]}"
        assert MemoryStore.from_yaml(text) == MemoryStore([MemoryEntry("3")])

    def test_the_parser_in_python_reads_the_same(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr("muniment.portable.yaml_text._Loader", yaml.SafeLoader)
        assert isinstance(_Reader("", [])._events, yaml.SafeLoader)  # pyright: ignore[reportPrivateUsage]
        assert MemoryStore.from_yaml(STORE.to_yaml()) == STORE
        for text in ("entries: &a [*a]", "entries: [", "a: \x00", "a: \ud800", "entries: []\n---\n"):
            with pytest.raises(UsageError, match=r"^store: "):
                MemoryStore.from_yaml(text)


def test_without_the_extra_yaml_is_unsupported_and_json_works():
    program = """
import sys
sys.modules["yaml"] = None
from muniment.errors import UnsupportedError
from muniment.portable import FileMemoryPort, MemoryStore
assert MemoryStore.from_json(MemoryStore().to_json()) == MemoryStore()
for use in (MemoryStore().to_yaml, lambda: MemoryStore.from_yaml(""), lambda: FileMemoryPort("a.yaml")):
    try:
        use()
    except UnsupportedError as error:
        assert "muniment[yaml]" in str(error), error
    else:
        raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
