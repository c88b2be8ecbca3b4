"""Texts that look like secrets: keys, tokens, passwords and card numbers, by their form.

What is found is named by its kind and its place; the secret itself is never part of an answer.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Secret:
    """Where something looks like a secret."""

    kind: str
    start: int
    """The first character."""
    end: int
    """The character after the last."""


_PREFIXED: Final[Mapping[str, str]] = {
    "private key": r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----",
    "AWS access key": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})",
    "GitLab token": r"(?<![\w\-])glpat-[A-Za-z0-9_\-]{20,}",
    "Slack token": r"(?<![\w\-])xox[abeoprs]-[A-Za-z0-9\-]{10,}",
    "Google API key": r"\bAIza[0-9A-Za-z_\-]{35}",
    "Stripe key": r"\b(?:sk|rk)_(?:live|test)_[0-9A-Za-z]{16,}",
    "API key": r"(?<![\w\-])sk-(?:ant-|proj-|or-)?(?=[A-Za-z_\-]{0,60}[0-9])[A-Za-z0-9_\-]{20,}",
    "npm token": r"\bnpm_[A-Za-z0-9]{36}\b",
    "Hugging Face token": r"\bhf_[A-Za-z0-9]{30,}\b",
    "JSON web token": r"(?<![\w\-])eyJ[A-Za-z0-9_\-]{10,}\.eyJ[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}",
    "password in a URL": r"\b[a-z][a-z0-9+.\-]{0,20}://[^\s/:@]{1,100}:[^\s/:@]{1,100}@[^\s/]",
}
_PATTERNS: Final = {kind: re.compile(pattern) for kind, pattern in _PREFIXED.items()}

_ASSIGNED: Final = re.compile(
    r"""\b(?:password|passwd|passphrase|pwd|secret|api[ _-]?key|access[ _-]?key|auth[ _-]?token|token)\b
        ["']?\s*(?:=|:|\bis\b)\s*["'`]?(?P<value>[^\s"'`,;]{7,}[^\s"'`,;.!?)\]}])""",
    re.IGNORECASE | re.VERBOSE,
)
_DATE_OR_NUMBER: Final = re.compile(r"[0-9T:.,+\-/Z]+")

_CARD: Final = re.compile(r"(?<![\w.\-])[2-6][0-9]{3}(?:[ -]?[0-9]{2,6}){2,4}(?![\w\-])")
_ISSUERS: Final = re.compile(
    "4[0-9]{15}|4[0-9]{12}|4[0-9]{18}"
    "|5[1-5][0-9]{14}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}"
    "|3[47][0-9]{13}|6(?:011|5[0-9]{2}|4[4-9][0-9])[0-9]{12}|35(?:2[89]|[3-8][0-9])[0-9]{12}"
    "|3(?:0[0-5]|[68][0-9])[0-9]{11}"
)
"""Visa, Mastercard, American Express, Discover, JCB and Diners Club, by their first digits and their lengths."""


def find_secrets(text: str) -> Iterator[Secret]:
    """What looks like a secret, in the order of its kinds and places; each part of the text once.

    Cost: a few passes over the text, whatever is in it: what may repeat is bounded. Pure.
    """
    starts: list[int] = []
    ends: list[int] = []  # of disjoint parts, so both lists rise together
    for secret in _find_all(text):
        at = bisect_right(starts, secret.start)
        is_free = (at == 0 or ends[at - 1] <= secret.start) and (at == len(starts) or secret.end <= starts[at])
        if is_free:
            starts.insert(at, secret.start)
            ends.insert(at, secret.end)
            yield secret


def _find_all(text: str) -> Iterator[Secret]:
    for kind, pattern in _PATTERNS.items():
        for found in pattern.finditer(text):
            yield Secret(kind, *found.span())
    for found in _ASSIGNED.finditer(text):
        if _looks_chosen(found["value"]):
            yield Secret("password or key", *found.span("value"))
    for found in _CARD.finditer(text):
        digits = re.sub("[ -]", "", found.group())
        if _ISSUERS.fullmatch(digits) and passes_luhn(digits):
            yield Secret("card number", *found.span())


def _looks_chosen(value: str) -> bool:
    """Whether it mixes letters with digits as passwords do, and is neither a word, a date nor a placeholder."""
    if _DATE_OR_NUMBER.fullmatch(value) or value.startswith(("<", "{", "$", "http://", "https://")):
        return False
    return any(sign.isdigit() for sign in value) and any(sign.isalpha() for sign in value)


def passes_luhn(digits: str) -> bool:
    """Whether the last digit is the one that the others ask for.

    Source: ISO/IEC 7812-1, annex B.
    """
    doubled = [sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2]]
    return (sum(map(int, digits[-1::-2])) + sum(doubled)) % 10 == 0
