"""Where a conversion takes place: the data set's folder, ours, and what is known of the files already."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from clnet.converters.marked import ConversionError, Skipped
from clnet.converters.memory import Memory
from clnet.data.header import ImageHeader, image_format, read_header
from clnet.data.image_errors import ImageError, NotAnImageError
from clnet.data.study import files_in

DATALIST, ACCOUNT, MEMORY = "datalist.json", "conversion.json", ".conversion-memory.json"


@dataclass(frozen=True)
class Workspace:
    """What every data set module is given.

    Attributes:
        source: the data set's folder.
        out: the folder to write to.
        memory: of work that need not be done again.
    """

    source: Path
    out: Path
    memory: Memory

    @classmethod
    def open(cls, source: Path, out: Path, workers: int | None = None) -> "Workspace":
        """With the memory that an earlier run left in `out`."""
        if not source.exists():
            raise ConversionError(f"{source}: no such file or folder. Check the path.")
        if source.resolve() == out.resolve():
            raise ConversionError(f"{out}: is the data set's own folder; give another one by --output.")
        if out.is_file() or ((out / DATALIST).exists() and not (out / ACCOUNT).exists()):
            raise ConversionError(f"{out}: holds something that `clnet convert` did not write; give another.")
        return cls(source, out, Memory(out / MEMORY, workers))

    def files(self, without: Iterable[Path] = ()) -> list[Path]:
        """All files of the data set, by name: neither hidden ones, nor what lies in `out`, nor `without`."""
        out, others = self.out.absolute(), {file.resolve() for file in without}
        return [
            file
            for file in sorted(files_in(self.source))
            if not file.absolute().is_relative_to(out) and not (others and file.resolve() in others)
        ]

    def name(self, file: Path) -> str:
        """The name of a file for an account: relative to the data set."""
        return file.relative_to(self.source).as_posix() if file.is_relative_to(self.source) else file.name

    def first_of(
        self, files: Iterable[Path], key_of: Callable[[Path], str], skipped: list[Skipped]
    ) -> dict[str, Path]:
        """The first file of each key, ordered by key; the others of that key are skipped."""
        first: dict[str, Path] = {}
        for file in sorted(files):
            if first.setdefault(key_of(file), file) != file:
                detail = f"{self.name(first[key_of(file)])} is used"
                skipped.append(Skipped(self.name(file), "another file of the same image", detail))
        return dict(sorted(first.items()))

    def words(self, error: Exception | str, file: Path) -> str:
        """What is wrong with a file, for an account that names it: without its path."""
        return str(error).removeprefix(f"{file}: ").replace(str(file), self.name(file))

    def refusal(self, file: Path, error: ImageError) -> Skipped:
        """The entry of a file that is refused."""
        reason = "not a DICOM image" if isinstance(error, NotAnImageError) else "unreadable image"
        return Skipped(self.name(file), reason, self.words(error, file))

    def headers(self, files: list[Path]) -> tuple[dict[Path, ImageHeader], list[Skipped]]:
        """The headers of the DICOM images among files, and the others with the reason of each."""
        found = self.memory.map(header_facts, files, "Reading headers")
        headers = {
            file: _header(facts, file) for file, facts in found.items() if not isinstance(facts, ImageError)
        }
        refused = [
            self.refusal(file, facts) for file, facts in found.items() if isinstance(facts, ImageError)
        ]
        return headers, refused


def pseudonym(identifier: str) -> str:
    """A short name for a patient or a study that is the same in every run, and not the identifier."""
    return sha256(f"clnet: {identifier}".encode()).hexdigest()[:16]


def header_facts(file: Path) -> dict[str, Any]:
    """The header of a DICOM file in a form that JSON can hold; pseudonyms stand for patient and study."""
    if image_format(file) != "DICOM":
        raise NotAnImageError(f"{file}: not a DICOM file")
    header = read_header(file)
    facts = asdict(header)
    del facts["file"]
    for name in ("patient_id", "study_uid"):
        facts[name] = facts[name] and pseudonym(facts[name])
    return facts


def _header(facts: dict[str, Any], file: Path) -> ImageHeader:
    tuples = {name: tuple(value) for name, value in facts.items() if isinstance(value, list)}
    return ImageHeader(file=file, **{**facts, **tuples})
