"""The set of use: problems drawn by weights of what attention is used for, from the hash of a freeze's commit.

The weights are committed before a draw, since the freeze is: it holds the hash of this file and of uses.py. No kernel
is asked whether it serves a problem, so that the draw comes out the same in any later tree.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

from attention.campaign.draw import MOST_BYTES, MOST_FLOPS, bytes_of, size_between
from attention.campaign.posed import Posed, posed, written
from attention.campaign.recorded_classes import kind_of
from attention.campaign.uses import CROSS, DIFFUSION, ENCODERS, LANGUAGE, PACKED, VISION, Model
from attention.errors import ProblemError

Use = Literal["prefill", "decode", "training", "vision", "diffusion", "cross attention", "packed"]
USES: tuple[Use, ...] = get_args(Use)
COUNT = 200
# Of a hundred problems. They are a judgement, which nobody has counted: each says what it rests on.
WEIGHTS: Mapping[Use, int] = {
    "prefill": 22,  # every request to a language model begins with one, and so does every call of an encoder
    "decode": 22,  # the other half of serving, most calls of all by number, one length after the other
    "training": 16,  # most hours of GPUs that are rented by the month, in few shapes
    "vision": 10,  # encoders of images, alone and in front of language models
    "diffusion": 14,  # images and videos: attention of thousands of tokens is most of their time
    "cross attention": 8,  # the same models' text, and decoders of speech: as many calls, little time each
    "packed": 8,  # training on texts of their own lengths, and prompts that are served together
}
GPUS = (1, 1, 1, 2, 4, 8)  # over which the heads of a language model are dealt
BATCHES: Mapping[Use, tuple[int, ...]] = {
    "prefill": (1, 1, 1, 2, 4, 8, 16, 32),
    "decode": (1, 1, 2, 4, 8, 16, 32, 64, 128, 256),
    "training": (1, 1, 2, 4, 8),
    "vision": (1, 1, 2, 4, 8, 16, 32, 64, 128, 256),
    "diffusion": (1, 2, 2, 4, 8),  # guidance asks with and without the text
    "cross attention": (1, 2, 2, 4, 8, 16),
}
CHUNKS = (512, 1024, 2048, 8192)  # of a long prompt, behind what of it is in the cache: what servers set
TRAINED = (2048, 4096, 4096, 8192, 16384)
TOKENS = (8192, 16384, 32768, 65536)  # of packed sequences together


@dataclass(frozen=True)
class Used:
    """A problem, what it is a use of, and the model whose figures it has."""

    use: Use
    model: str
    posed: Posed

    def __str__(self) -> str:
        return f"{self.use}: {self.model}"


def drawn(commit: str) -> tuple[Used, ...]:
    """The set of a commit, by its full hash: COUNT problems, no two alike, of each use about as many as it weighs."""
    rng = random.Random(f"use {commit}")
    found: dict[str, Used] = {}
    while len(found) < COUNT:
        use = rng.choices(USES, [WEIGHTS[each] for each in USES])[0]
        one = next(each for each in _attempts(rng, use) if str(each.posed) not in found)
        found[str(one.posed)] = one
    return tuple(found.values())


def _attempts(rng: random.Random, use: Use) -> Iterator[Used]:
    """Problems of a use, without end, of which none is too large."""
    while True:
        model = rng.choice(MODELS[use])
        try:
            found = _classed(DRAWS[use](rng, model))
        except ProblemError:
            continue
        if found.flops <= MOST_FLOPS and bytes_of(found) <= MOST_BYTES:
            yield Used(use, model.name, found)


def _classed(found: Posed) -> Posed:
    return found if found.lengths else replace(found, kind=kind_of(found.problem))


def _posed(model: Model, batch: int, queries: int, keys: int, words: str, gpus: int = 1) -> Posed:
    """A problem of a model's heads, dealt over so many GPUs. Raises ProblemError where they cannot be."""
    if model.heads_kv % gpus:
        raise ProblemError(f"{model.heads_kv} heads are not dealt over {gpus} GPUs.")
    dims = (int(each) for each in model.head_dims.split("/"))
    sizes = (batch, model.heads_q // gpus, model.heads_kv // gpus, queries, keys, *dims)
    return posed("packed" if "lengths=" in words else "prefill", sizes, model.dtype, words.split())


def _prefill(rng: random.Random, model: Model) -> Posed:
    """A prompt, or a chunk of one behind a cache; of an encoder its whole input."""
    batch, words = rng.choice(BATCHES["prefill"]), rng.choice(model.layers)
    if model.queries:
        rows = rng.choice(model.queries)
        return _posed(model, batch, rows, rows, words)
    keys = queries = size_between(rng, 128, model.longest)
    if rng.random() < 0.25:
        queries = rng.choice([each for each in CHUNKS if each <= model.longest // 2])
        keys = queries + size_between(rng, 512, model.longest - queries)
    return _posed(model, batch, queries, keys, words, rng.choice(GPUS))


def _decode(rng: random.Random, model: Model) -> Posed:
    """A token of each sequence, or a draft of a few; a quarter of them in a static cache that each fills as it may."""
    batch, words, gpus = rng.choice(BATCHES["decode"]), rng.choice(model.layers), rng.choice(GPUS)
    queries = rng.choice((1, 1, 1, 1, rng.randint(2, 16)))
    keys = size_between(rng, 256, model.longest)
    if queries == 1:
        words = words.replace("causal", "")
    if rng.random() < 0.25:
        lengths = tuple(rng.randint(max(queries, keys // 8), keys) for _ in range(batch))
        words = f"{words} used={written(lengths)}"
    return _posed(model, batch, queries, keys, words, gpus)


def _training(rng: random.Random, model: Model) -> Posed:
    """The forward of a training step."""
    rows = min(rng.choice(TRAINED), model.longest)
    batch = rng.choice(BATCHES["training"])
    return _posed(model, batch, rows, rows, rng.choice(model.layers), rng.choice(GPUS))


def _given(use: Use) -> Callable[[random.Random, Model], Posed]:
    """Of a model that is always given as many queries, and as many keys."""

    def draw(rng: random.Random, model: Model) -> Posed:
        batch, queries = rng.choice(BATCHES[use]), rng.choice(model.queries)
        return _posed(model, batch, queries, rng.choice(model.keys or (queries,)), rng.choice(model.layers))

    return draw


def _packed(rng: random.Random, model: Model) -> Posed:
    """Texts, or images, of their own lengths until the tokens are full, which cuts the last one short."""
    total, lengths = rng.choice(TOKENS), list[int]()
    longest = min(model.longest, rng.choice((1024, 4096, 8192)))
    while (left := total - sum(lengths)) > 0:
        lengths.append(min(left, size_between(rng, 64, longest)))
    words = f"{rng.choice(model.layers)} lengths={written(tuple(lengths))}"
    return _posed(model, 0, 0, 0, words, rng.choice(GPUS) if model in LANGUAGE else 1)


MODELS: Mapping[Use, tuple[Model, ...]] = {
    "prefill": (*LANGUAGE, *ENCODERS),
    "decode": tuple(each for each in LANGUAGE if each.decodes),
    "training": LANGUAGE,
    "vision": VISION,
    "diffusion": DIFFUSION,
    "cross attention": CROSS,
    "packed": (*(each for each in LANGUAGE if each.decodes), *PACKED),
}
DRAWS: Mapping[Use, Callable[[random.Random, Model], Posed]] = {
    "prefill": _prefill,
    "decode": _decode,
    "training": _training,
    "vision": _given("vision"),
    "diffusion": _given("diffusion"),
    "cross attention": _given("cross attention"),
    "packed": _packed,
}
