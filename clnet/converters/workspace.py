"""The context of a conversion: source and output folder, cached results, and what was skipped."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from clnet.converters.annotated import ConversionError, Skipped
from clnet.converters.file_cache import FileCache
from clnet.data.header import Format, ImageHeader, image_format, read_header
from clnet.data.image_errors import ImageError, NotAnImageError
from clnet.data.study import files_in

DATALIST, REPORT, CACHE = "datalist.json", "conversion.json", ".conversion-cache.json"


@dataclass(frozen=True)
class Workspace:
    """What the reader of every data set is given.

    Attributes:
        source: the folder of the data set.
        output: the folder to write to.
        cache: results that need not be computed again.
        skipped: everything that was not used, in any order.
        warnings: what was used but is unusual.
    """

    source: Path
    output: Path
    cache: FileCache
    skipped: list[Skipped] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, source: Path, output: Path, workers: int | None = None) -> "Workspace":
        """Check the folders, and read the cache that an earlier run left in `output`."""
        if not source.exists():
            raise ConversionError(f"{source}: no such file or folder. Check the path.")
        if source.resolve() == output.resolve():
            raise ConversionError(f"{output}: is the data set's own folder; choose another with --output.")
        if output.is_file() or ((output / DATALIST).exists() and not (output / REPORT).exists()):
            raise ConversionError(
                f"{output}: was not written by `clnet convert`; choose another folder with --output."
            )
        return cls(source, output, FileCache(output / CACHE, workers))

    def skip(self, item: Path | str, reason: str, detail: str = "") -> None:
        """Record something that is not used: a file, or words for what is none."""
        self.skipped.append(Skipped(self.name(item) if isinstance(item, Path) else item, reason, detail))

    def warn(self, message: str) -> None:
        """Record something unusual that is used nevertheless."""
        self.warnings.append(message)

    def files(self, without: Iterable[Path] = ()) -> list[Path]:
        """All files of the data set in order, except hidden ones, `without`, and what is in `output`."""
        output, others = self.output.absolute(), {file.resolve() for file in without}
        return [
            file
            for file in sorted(files_in(self.source))
            if not file.absolute().is_relative_to(output) and not (others and file.resolve() in others)
        ]

    def name(self, file: Path) -> str:
        """The path of a file relative to the data set."""
        return file.relative_to(self.source).as_posix() if file.is_relative_to(self.source) else file.name

    def first_by_key(self, files: Iterable[Path], key_of: Callable[[Path], str]) -> dict[str, Path]:
        """The first file of each key, in the order of the keys; skip the other files of that key."""
        first: dict[str, Path] = {}
        for file in sorted(files):
            used = first.setdefault(key_of(file), file)
            if used != file:
                self.skip(file, "duplicate image file", f"{self.name(used)} is used")
        return dict(sorted(first.items()))

    def message(self, error: Exception | str, file: Path) -> str:
        """An error message about a file, without its absolute path."""
        return str(error).removeprefix(f"{file}: ").replace(str(file), self.name(file))

    def warn_of_other_view(self, where: str, laterality: str, view: str, header: ImageHeader) -> None:
        """Warn if the header of an image names another view or breast than the table, which is followed."""
        for in_table, in_image in ((view.upper(), header.view), (laterality, header.laterality)):
            if in_image and in_image != in_table:
                self.warn(f"{where}: {in_table} in the table, {in_image} in the image; the table is followed")

    def headers(
        self, files: Iterable[Path], formats: Sequence[Format] = ("DICOM",)
    ) -> dict[Path, ImageHeader]:
        """The headers of the images of some formats among `files`; skip the other files."""
        headers = {}
        jobs = dict.fromkeys(files, tuple(formats))
        for file, facts in self.cache.map(header_facts, jobs, "Reading headers").items():
            if isinstance(facts, ImageError):
                reason = "unreadable image"
                if isinstance(facts, NotAnImageError):
                    reason = f"not a {_either(formats)} image"
                self.skip(file, reason, self.message(facts, file))
            else:
                tuples = {name: tuple(value) for name, value in facts.items() if isinstance(value, list)}
                headers[file] = ImageHeader(file=file, **{**facts, **tuples})
        return headers


def pseudonym(identifier: str) -> str:
    """A short digest of a patient or study identifier, the same in every run."""
    return sha256(f"clnet: {identifier}".encode()).hexdigest()[:16]


def header_facts(file: Path, *formats: Format) -> dict[str, Any]:
    """The header of a file as `FileCache` stores it, with pseudonyms for patient and study."""
    if image_format(file) not in formats:
        raise NotAnImageError(f"{file}: not a {_either(formats)} file")
    facts = asdict(read_header(file))
    del facts["file"]
    for name in ("patient_id", "study_uid"):
        facts[name] = facts[name] and pseudonym(facts[name])
    return facts


def _either(words: Sequence[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last
