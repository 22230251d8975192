"""`python -m proof.simulation`: play worlds from seeds, a story once more, or worlds with a planted defect."""

# ruff: noqa: E402, T201  Python and Django are set up before anything is imported; a program talks

from __future__ import annotations

from proof.simulation import process

process.prepare("proof.simulation")

import argparse
import os
import pdb
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

from proof.simulation import planted, play, story
from proof.simulation.director import of_worlds
from proof.simulation.transcript import Transcript

APART = 1_000_000  # between the seeds of two processes


def main() -> int:
    """Do what the command line says; 1 when something is found to be wrong."""
    options = _options()
    if options.story:
        with planted.planted(options.plant) if options.plant else nullcontext():
            return _play(options)
    if options.plant:
        options.seconds = options.seconds or planted.SECONDS
        return planted.tell(planted.hunt(options.plant, options))
    if options.seed is None:
        options.seed = int.from_bytes(os.urandom(2), "big")
    return _beside_each_other(options) if options.processes > 1 else _worlds(options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m proof.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="the first seed; without one, a random one")
    parser.add_argument("--hours", type=float, default=1.0, help="how many cluster-hours in all")
    parser.add_argument(
        "--world-hours",
        type=float,
        default=0.05,
        help="cluster-hours of one world, but for those in which it comes to rest",
    )
    parser.add_argument(
        "--plain", action="store_true", help="50 nodes, 200 jobs an hour, all at their usual size: for measuring"
    )
    parser.add_argument(
        "--remote",
        action="store_true",
        help="only worlds in which controllers and scheduler work from elsewhere, by the cluster's API",
    )
    parser.add_argument("--moves", type=int, help="how many moves of each world")
    parser.add_argument("--processes", type=int, default=1, help="how many processes share the hours")
    parser.add_argument("--story", type=Path, help="play this story again")
    parser.add_argument("--tell", action="store_true", help="tell that story move by move")
    parser.add_argument("--debug", action="store_true", help="open a debugger where that story goes wrong")
    parser.add_argument("--keep", type=Path, default=Path(".cache/simulation"), help="where stories are kept")
    parser.add_argument("--plays", type=int, default=600, help="how often a story is played to make it short")
    parser.add_argument("--plant", choices=planted.PLANTS, metavar="NAME", help="with this defect, until it is found")
    parser.add_argument("--seconds", type=float, help="of CPU, after which no world is begun; a planted defect has 240")
    return parser.parse_args()


def _play(options: argparse.Namespace) -> int:
    """Play a story; with `--tell`, say what was done and what came of it.

    With `--debug` a debugger opens where something is found.
    """
    loaded = story.decode(options.story.read_bytes())
    transcript = Transcript()
    on_move = transcript.note if options.tell else None
    played = play.again(loaded, on_move, _debug if options.debug else None)
    print("\n".join(transcript.lines))
    return _say(played)


def _debug(error: Exception) -> None:
    print(f"{error}\nThe world stands as it was then; `up` leads to it.")
    pdb.post_mortem(error.__traceback__)


def _say(played: play.Played) -> int:
    if played.found is None:
        print(f"nothing is wrong; the log is {played.digest}")
        return 0
    print(f"{played.found.kind}: {played.found.text}\n{played.found.trace}")
    return 1


def _beside_each_other(options: argparse.Namespace) -> int:
    """Share the hours among processes; end with the first that finds something."""
    each = ["--hours", str(options.hours / options.processes), "--world-hours", str(options.world_hours)]
    each += ["--keep", str(options.keep), "--plays", str(options.plays)]
    each += [*["--plain"] * options.plain, *["--remote"] * options.remote]
    command = [sys.executable, "-m", "proof.simulation", *each, "--seed"]
    children = [subprocess.Popen([*command, str(options.seed + n * APART)]) for n in range(options.processes)]
    return max(child.wait() for child in children)


def _worlds(options: argparse.Namespace) -> int:
    """Play worlds, one after the other, until the hours are over or something is found."""
    hours, begun, seed = 0.0, time.process_time(), options.seed
    weights = of_worlds(plain=options.plain, remote=options.remote)
    while hours < options.hours and not (options.seconds and time.process_time() - begun >= options.seconds):
        played = play.from_seed(seed, min(options.world_hours, options.hours), weights, most=options.moves)
        hours += played.hours
        rate = hours / (time.process_time() - begun) * 600
        print(
            f"seed {seed}: {played.hours:.1f} cluster-hours, {len(played.moves)} moves, {played.requests} requests,"
            f" {played.revisions} revisions, log {played.digest}; {rate:.0f} hours in ten minutes of a core",
            flush=True,
        )
        if played.found:
            if not options.plays:
                return _say(played)
            return _shorten(options, seed, played)
        seed += 1
    return 0


def _shorten(options: argparse.Namespace, seed: int, played: play.Played) -> int:
    """Make a story short that finds something, keep it and tell it."""
    _say(played)
    options.keep.mkdir(parents=True, exist_ok=True)
    path = options.keep / f"seed-{seed}.json"
    path.write_bytes(story.encode(played.story))
    print(f"{path} has the whole story; it is being made short.", flush=True)
    short = play.shorten(played, options.plays)
    path.write_bytes(story.encode(short))
    transcript = Transcript()
    outcome = play.again(short, transcript.note)
    print("\n".join(transcript.lines))
    print(f"\n{len(played.moves)} moves became {len(short.moves)}. Once more: make simulate STORY={path}")
    return _say(outcome)


if __name__ == "__main__":
    sys.exit(main())
