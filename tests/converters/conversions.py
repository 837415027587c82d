"""Run `clnet convert` on a data set and read what it wrote."""

import json
from dataclasses import dataclass

from clnet.cli.main import main
from clnet.data.datalist import Datalist, read_datalist


@dataclass
class Conversion:
    """The result of a conversion: the datalist, the report, and what was printed."""

    datalist: Datalist
    report: dict
    said: str

    @property
    def pairs(self):
        """By id, of all sections."""
        return {pair.pair_id: pair for pairs in self.datalist.sections.values() for pair in pairs}

    @property
    def skipped(self):
        """(item, reason) of everything skipped."""
        return {(entry["item"], entry["reason"]) for entry in self.report["skipped"]}

    @property
    def warnings(self):
        """All of them as one text."""
        return "\n".join(self.report["warnings"])

    def detail(self, item):
        """The detail of a skipped item."""
        return next(entry["detail"] for entry in self.report["skipped"] if entry["item"] == item)

    def boxes(self, pair_id, view):
        """Those of a view of a pair."""
        return getattr(self.pairs[pair_id], view).boxes.tolist()


def convert(data_set, source, out, capsys, *options):
    words = ["convert", data_set, str(source), "--output", str(out), "--workers", "1", *map(str, options)]
    status = main(words)
    said = capsys.readouterr()
    assert status == 0, said.err
    return Conversion(read_datalist(out), json.loads((out / "conversion.json").read_text()), said.out)
