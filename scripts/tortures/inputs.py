"""Mutated files given to the functions that read them: each is read, or refused by name.

A worker process says what came of each input, so that one at which it crashes or hangs is known, and the next
worker resumes behind it.
"""

import multiprocessing
import random
import resource
import time
import warnings
from multiprocessing.connection import Connection
from pathlib import Path

from tortures.outcome import Outcome
from tortures.readers import verdict
from tortures.samples import SECRET, Sample, all_samples

SLOWEST_SECONDS, MOST_MB, HANGS_SECONDS = 5.0, 2048, 600.0
Told = tuple[str, str, float, int]
"""The verdict, what went wrong, CPU seconds, and megabytes of the process."""


def mutants(folder: Path, number: int, seed: int, outcome: Outcome) -> None:
    """Read so many mutated inputs."""
    samples = all_samples(folder / "samples")
    for sample in samples:
        file = _file_of(folder, sample)
        file.write_bytes(sample.data)
        if verdict(sample.read, file) != "read":
            raise RuntimeError(f"the sample of {sample.name} is refused as it is")
    outcome.notes["formats and transfer syntaxes"] = len(samples)
    slowest = outcome.notes.get("slowest, seconds", 0.0)
    while outcome.tried < number:
        ours, theirs = multiprocessing.Pipe(duplex=False)
        arguments = (theirs, folder, samples, seed, outcome.tried, number)
        worker = multiprocessing.get_context("fork").Process(target=_read_all, args=arguments)
        worker.start()
        theirs.close()
        while outcome.tried < number:
            told = _next(ours)
            sample = samples[outcome.tried % len(samples)]
            if isinstance(told, str):
                outcome.stuck += 1
                outcome.fail(f"input {outcome.tried} ({sample.name}, seed {seed}): {told}")
                outcome.tried += 1
                break
            name, error, seconds, megabytes = told
            if error or seconds > SLOWEST_SECONDS:
                outcome.fail(f"input {outcome.tried} ({sample.name}, seed {seed}): {error or seconds}")
            outcome.survived += not error
            outcome.note(name)
            outcome.tried += 1
            slowest, outcome.peak_mb = max(slowest, seconds), max(outcome.peak_mb, megabytes)
            outcome.notes["slowest, seconds"] = round(slowest, 3)
            if outcome.tried % 250 == 0:
                outcome.keep()
        worker.kill()
        worker.join()
    if outcome.peak_mb > MOST_MB:
        outcome.fail(f"a worker took {outcome.peak_mb} MB")
    outcome.keep()


def _next(ours: Connection) -> Told | str:
    try:
        return ours.recv() if ours.poll(HANGS_SECONDS) else "hangs"
    except EOFError:
        return "crashes"


def mutant(sample: Sample, seed: int, number: int) -> bytes:
    """One damaged copy; the same numbers give the same bytes."""
    chance = random.Random(f"{seed} {number}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pydicom, about the values that make no sense
        try:
            return chance.choice(sample.mutate)(sample.data, chance)
        except (TypeError, ValueError, AttributeError, OverflowError):  # pydicom writes no such value
            return sample.mutate[0](sample.data, chance)


def _read_all(
    theirs: Connection, folder: Path, samples: list[Sample], seed: int, first: int, end: int
) -> None:
    """In the worker: read the inputs of these numbers."""
    for number in range(first, end):
        sample = samples[number % len(samples)]
        file = _file_of(folder, sample)
        file.write_bytes(mutant(sample, seed, number))
        clock, name, error = time.process_time(), "not refused by name", ""
        try:
            name = verdict(sample.read, file, SECRET)
        except BaseException as problem:  # a panic in Rust is no `Exception`
            error = f"{type(problem).__name__}: {str(problem)[:300]}"
        seconds = time.process_time() - clock
        theirs.send((name, error, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024))


def _file_of(folder: Path, sample: Sample) -> Path:
    place = folder / "input"
    place.mkdir(exist_ok=True)
    for other in place.iterdir():
        other.unlink()
    return place / f"mutant{sample.suffix}"
