"""`clnet …`: what a bundle has no word for.

Each command is a function that takes the parsed arguments. What it needs is imported when it runs, so that
`clnet --help` answers at once.
"""

import argparse
import sys
from pathlib import Path

from clnet import __version__
from clnet.errors import ClnetError


def main(arguments: list[str] | None = None) -> int:
    """Run a command; errors that the user can mend are printed as one line."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options) or 0)
    except ClnetError as error:
        print(f"clnet {options.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"clnet {options.command}: stopped", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="clnet", description="Find masses in the CC and MLO views of a breast, and link the same mass."
    )
    parser.add_argument("--version", action="version", version=f"clnet {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_phantom(commands)
    #_add_inspect(commands)
    return parser


def _add_phantom(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "phantom",
        help="make the embedded data set: DICOM pairs whose boxes and links are exactly known",
        description="Make a phantom: images/*.dcm, datalist.json (training, validation, test), preview.png. "
        "The same settings give the same bytes.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write to")
    command.add_argument("--pairs", type=int, default=40, metavar="N", help="how many pairs to make")
    command.add_argument("--seed", type=int, default=0, metavar="S", help="another seed, another phantom")
    command.add_argument(
        "--size", type=int, nargs=2, default=(320, 224), metavar=("H", "W"), help="rows and columns"
    )
    command.add_argument("--difficulty", default="standard", help="easy, standard or hard")
    command.add_argument("--workers", type=int, metavar="K", help="processes (default: one for each core)")
    command.set_defaults(run=_phantom)


def _phantom(options: argparse.Namespace) -> None:
    from clnet.data.phantom import PhantomSettings, make_phantom

    settings = PhantomSettings(options.pairs, options.seed, *options.size, options.difficulty)
    datalist = make_phantom(options.out, settings, options.workers)
    for section, pairs in datalist.sections.items():
        lesions = {
            (pair.pair_id, i) for pair in pairs for view in pair.views.values() for i in view.lesion_ids
        }
        links = sum(len(pair.links) for pair in pairs)
        print(f"{section:<11}{len(pairs):>5} pairs {len(lesions):>5} masses, {links} linked in both views")
    print(f"datalist  {options.out / 'datalist.json'}\npicture   {options.out / 'preview.png'}")
