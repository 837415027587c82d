"""Run the command line on a data set, and look at what it wrote."""

import json
from dataclasses import dataclass

from clnet.cli.main import main
from clnet.data.datalist import Datalist, read_datalist


@dataclass
class Conversion:
    """What a conversion left: the datalist, its pairs by id, the account, and what was printed."""

    datalist: Datalist
    account: dict
    said: str

    @property
    def pairs(self):
        """By id, of all sections."""
        return {pair.pair_id: pair for pairs in self.datalist.sections.values() for pair in pairs}

    @property
    def skipped(self):
        """(item, reason) of what was not used."""
        return {(entry["item"], entry["reason"]) for entry in self.account["skipped"]}

    @property
    def warnings(self):
        """All of them as one text."""
        return "\n".join(self.account["warnings"])

    def detail(self, item):
        """What more is said of an item that was not used."""
        return next(entry["detail"] for entry in self.account["skipped"] if entry["item"] == item)

    def boxes(self, pair_id, view):
        """Those of a view of a pair."""
        return getattr(self.pairs[pair_id], view).boxes.tolist()


def convert(data_set, source, out, capsys, *options):
    words = ["convert", data_set, str(source), "--output", str(out), "--workers", "1", *map(str, options)]
    status = main(words)
    said = capsys.readouterr()
    assert status == 0, said.err
    return Conversion(read_datalist(out), json.loads((out / "conversion.json").read_text()), said.out)
