"""What machine this is."""

import os
import platform
from pathlib import Path


def machine() -> dict[str, str | int | None]:
    """Processor, cores, Python and system."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}",
    }


def processor() -> str:
    """The processor's name where the system tells."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
