"""Names of GPUs as people type them: 'a100', 'H100 PCIe', 'rtx4090', 'NVIDIA A100-SXM4-80GB'."""

import re
from collections.abc import Iterable

_VENDOR = frozenset({"nvidia", "tesla", "geforce", "quadro", "graphics", "gpu"})
# Words without which a name is another GPU's: an RTX 6000 is Turing's, an RTX PRO 6000 Blackwell's.
_TELLING = ("pro", "ti", "super")


def matching(asked: str, named: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """The slugs that `asked` may mean, the nearest kind of match alone; each of `named` is a slug and other names.

    Nearest is the whole name, then words of it, then beginnings of words, then all of it without spaces and dashes. No
    number is cut: 'l4' does not begin 'l40', which is another GPU.
    """
    wanted = words(asked)
    if not wanted:
        return ()
    every = [(names[0], [words(name) for name in names]) for names in named]
    whole = [slug for slug, called in every if wanted in called]
    inside = [slug for slug, called in every if set(wanted) <= {word for name in called for word in name}]
    begun = [slug for slug, called in every if _all_begin(wanted, [word for name in called for word in name])]
    joined = [slug for slug, called in every if any(_begins("".join(wanted), "".join(name)) for name in called)]
    return tuple(dict.fromkeys(whole or inside or begun or joined))


def leaves_out(asked: str, slug: str) -> bool:
    """Whether `asked` lacks a word of the slug without which it names another GPU."""
    said = "".join(words(asked))
    return any(word in words(slug) and word not in said for word in _TELLING)


def words(text: str) -> list[str]:
    """What tells one GPU from another in a name, in lower case: 'NVIDIA A100-SXM4-80GB' is a100, sxm4 and 80gb."""
    return [word for word in re.split(r"[^a-z0-9.]+", text.lower()) if word and word not in _VENDOR]


def listed(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _all_begin(wanted: list[str], every: list[str]) -> bool:
    return all(any(_begins(each, word) for word in every) for each in wanted)


def _begins(part: str, word: str) -> bool:
    rest = word[len(part) :]
    return word.startswith(part) and not (part[-1].isdigit() and rest[:1].isdigit())
