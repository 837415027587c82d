"""The commands of the pages, made small enough to be run by tests."""

import re
import shlex
import sys
from pathlib import Path

import in_process

ROOT = Path(__file__).parent.parent
PROCESSES = "2"  # in place of as many as a page names


def commands_of(page):
    """The words of every command in the bash blocks of a page, comments and line breaks taken out."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for block in re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(re.sub(r"(^|\s)#.*", "", line))  # within a word, # is MONAI's
            if words:
                yield words


def made_small(words, **options):
    """The command with this Python; one of the bundle gets the options, a server only shows its help."""
    if words[0] == "clnet":
        return [sys.executable, "-m", "clnet.cli", *words[1:]]
    if words[0] == "mlflow":
        return [sys.executable, "-m", "mlflow", words[1], "--help"]
    assert "monai.bundle" in words, f"how is {words[0]} to be tested?"
    start = [sys.executable]
    if words[0] == "torchrun":
        start += ["-m", "torch.distributed.run", "--standalone"]
        words = list(words)
        words[words.index("--nproc_per_node") + 1] = PROCESSES
    return [*start, *words[1:], *(part for key in options for part in (f"--{key}", str(options[key])))]


def run_command(command, folder):
    """Run in a folder: several processes as such, one as part of this process."""
    python, dash_m, module, *words = command
    assert (python, dash_m) == (sys.executable, "-m"), command
    if module != "torch.distributed.run":
        done = in_process.run_module(module, *words, folder=folder)
    else:
        done = in_process.run_outside(command, folder)
    assert done.returncode == 0, (
        f"{shlex.join(map(str, command))}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    )
