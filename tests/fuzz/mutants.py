"""`python -m tests.fuzz.mutants TARGET --count N --seed S`: runs random changes of the corpus, without atheris.

For what is fast and small: a million inputs of a parser take minutes.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections.abc import Sequence

from tests.mutations.mutants import mutate_bytes

from .problems import Problem, find_problem
from .targets import TARGETS, Target

_REPORT_SECONDS = 30
_MOST_BYTES = 4_096
_TOKEN = re.compile(rb"\w+|\s+|[^\w\s]")


def mutants(target: Target, seed: int, first: int, count: int) -> Sequence[bytes]:
    """The inputs with these numbers: the same for the same arguments."""
    files = [(path.name, path.read_bytes()) for path in target.inputs()]
    words = [token for _, data in files for token in _TOKEN.findall(data) if not token.isspace()]
    return [_mutant(random.Random(f"{seed}:{number}"), files, words) for number in range(first, first + count)]


def _mutant(chance: random.Random, files: Sequence[tuple[str, bytes]], words: Sequence[bytes]) -> bytes:
    _, data = chance.choice(files)
    if chance.random() < 0.8:
        # A statement, or a line, alone: short inputs are many.
        data = chance.choice(data.split(chance.choice((b";", b"\n"))))
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        data = _change_tokens(data, words, chance) if chance.random() < 0.7 else mutate_bytes(data, files, chance)
    return data[:_MOST_BYTES]


def _change_tokens(data: bytes, words: Sequence[bytes], chance: random.Random) -> bytes:
    """With a token in the place of another one, between two, or left out; or two that changed places."""
    tokens = _TOKEN.findall(data)
    if not tokens:
        return chance.choice(words)
    at = chance.randrange(len(tokens))
    match chance.randrange(5):
        case 0:
            tokens[at] = chance.choice(words)
        case 1:
            tokens.insert(at, chance.choice(words) + chance.choice((b"", b" ")))
        case 2:
            del tokens[at : at + chance.choice((1, 2, 8))]
        case 3:
            other = chance.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        case _:
            start = chance.randrange(len(tokens))
            tokens[at:at] = tokens[start : start + chance.randrange(1, 12)]
    return b"".join(tokens)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.mutants", description=__doc__)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--count", type=int, default=10_000, help="how many inputs (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of all inputs (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one (default: %(default)s)")
    args = parser.parse_args()
    return _run(TARGETS[args.target], args.seed, args.first, args.count)


def _run(target: Target, seed: int, first: int, count: int) -> int:
    run = target.load()
    found: dict[str, Problem] = {}
    begun = shown = time.monotonic()
    slowest_s, done = 0.0, 0
    for start in range(first, first + count, 1_000):
        for number, data in enumerate(mutants(target, seed, start, min(1_000, first + count - start)), start):
            before_s = time.process_time()
            problem = find_problem(run, data)
            slowest_s = max(slowest_s, time.process_time() - before_s)
            done += 1
            if problem is not None and problem.id not in found:
                found[problem.id] = problem
                print(f"input {number}, {data!r}:\n{problem.text}\n", flush=True)
        if time.monotonic() - shown > _REPORT_SECONDS:
            shown = time.monotonic()
            print(f"{done} of {count}, {len(found)} findings", file=sys.stderr, flush=True)
    seconds = time.monotonic() - begun
    slowest = f"the slowest took {1000 * slowest_s:.0f} ms of the processor"
    print(f"{target.name}: {done} inputs in {seconds:.0f} s, {slowest}, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
