"""What looks like a secret is found, and ordinary text is not."""

from __future__ import annotations

import time

import pytest

from muniment.core.secrets import find_secrets, passes_luhn

# Put together here, so that no scanner of this repository takes them for real ones.
PLANTED = [
    ("private key", "-----BEGIN " + "RSA PRIVATE KEY-----\nMIIE"),
    ("private key", "-----BEGIN " + "PRIVATE KEY-----"),
    ("AWS access key", "AKIA" + "IOSFODNN7EXAMPLE"),
    ("GitHub token", "ghp_" + "a1B2" * 9),
    ("GitHub token", "github_pat_" + "a1B2" * 12),
    ("GitLab token", "glpat-" + "a1B2c3D4e5F6g7H8i9J0"),
    ("Slack token", "xoxb-" + "123456789012-abcdef"),
    ("Google API key", "AIza" + "a1B2c" * 7),
    ("Stripe key", "sk_live_" + "a1B2" * 6),
    ("API key", "sk-proj-" + "a1B2" * 6),
    ("API key", "sk-ant-" + "api03-" + "a1B2" * 6),
    ("npm token", "npm_" + "a1B2" * 9),
    ("Hugging Face token", "hf_" + "a1B2" * 9),
    ("JSON web token", "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxMjM0In0" + "." + "c2lnbmF0dXJl"),
    ("password in a URL", "postgres://" + "anna:hunter2@db.example/x"),
    ("password or key", "password: " + "hunter2hunter2"),
    ("password or key", "the password is " + "corr3ct-horse"),
    ("password or key", 'API_KEY="' + 'a1b2c3d4e5f6"'),
    ("card number", "4111 1111 " + "1111 1111"),
    ("card number", "5500-0000-" + "0000-0004"),
    ("card number", "3782 822463 " + "10005"),
    ("card number", "6011111111" + "111117"),
]

ORDINARY = [
    "prefers the Berlin warehouse",
    "Call +49 30 1234 5678 or 0800 111 22 33 before nine.",
    "order 4111 1111 1111 1112 was shipped",
    "ISBN 978-3-16-148410-0 and 9783161484100",
    "2026-03-01T09:30:00Z, 1764566400000000 us since 1970",
    "id 00000000-0000-4000-8000-000000000000 and 4f3c2a10-4111-4111-8111-111111111111",
    "IBAN DE89 3702 0044 0532 0130 00",
    "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "the password is required; passwords are hashed",
    "password: forgotten, secret: yes, token: optional",
    "token: 2026-01-01T00:00, api key: <your key 1234>",
    "https://example.com/a:b@c and mail to anna@example.com:25",
    "http://localhost:8080/path",
    "the task-list of sk-learn and sk-image: sk-something-without-digits-in-it",
    "a public key: -----BEGIN PUBLIC KEY-----",
    "tracking 1Z999AA10123456784, invoice 2024-000123-0001-0002",
    "3.1415926535897932384626433832795028841971",
    "version v1.2.3, POL-358, foo_bar, ghp_short, AKIA",
    "The secret of good memory is repetition. Tokens are cheap; keys are not.",
    "東京 4111 \U0001f600",
    "",
]


@pytest.mark.parametrize(("kind", "text"), PLANTED, ids=[f"{n}-{kind}" for n, (kind, _) in enumerate(PLANTED)])
@pytest.mark.parametrize("around", ["{}", "it is {}, keep it", "({})", "a\n{}\nb"])
def test_a_planted_secret_is_found_once(kind: str, text: str, around: str) -> None:
    whole = around.format(text)
    (found,) = find_secrets(whole)
    assert found.kind == kind
    assert text.startswith(whole[found.start : found.end]) or whole[found.start : found.end] in text


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_no_secret(text: str) -> None:
    assert list(find_secrets(text)) == []


def test_several_in_one_text() -> None:
    text = "\n".join(text for _, text in PLANTED[2:6])
    assert len(list(find_secrets(text))) == 4


@pytest.mark.parametrize(
    ("digits", "good"), [("4111111111111111", True), ("4111111111111112", False), ("79927398713", True), ("0", True)]
)
def test_luhn(digits: str, good: bool) -> None:
    assert passes_luhn(digits) is good


@pytest.mark.parametrize("piece", ["eyJ-", "eyJaaaaaaaaaaaaa.", "sk-", "a://b:", "4111 ", "token:", "-----BEGIN A "])
def test_no_text_takes_long(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    began = time.process_time()
    list(find_secrets(text))
    assert time.process_time() - began < 5
