"""What a person judges by eye: the breasts, their pictures, and judgements that are kept."""

import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import in_process
import look_at_links
import pytest
from look_at_links import chosen_of, judged
from PIL import Image

from clnet.data.datalist import Datalist, read_datalist, write_datalist

FILMS = look_at_links.ROOT / "tests" / "data" / "cbis-ddsm"


@pytest.fixture
def films(tmp_path):
    """A data set with the two real breasts, of which the right one has two masses, in every section."""
    pairs = read_datalist(FILMS)["test"]
    sections = {
        section: tuple(
            replace(pair, pair_id=f"{section}_{pair.laterality}", patient_id=section) for pair in pairs
        )
        for section in ("training", "validation", "test")
    }
    write_datalist(Datalist("films", sections), tmp_path / "films" / "datalist.json")
    return tmp_path / "films"


def test_breasts_with_several_masses_are_chosen_those_that_training_has_not_seen_first(films):
    chosen = [(section, pair.pair_id) for section, pair in chosen_of(read_datalist(films))]
    assert chosen == [("test", "test_R"), ("validation", "validation_R"), ("training", "training_R")]


def test_judgements_are_kept_for_the_same_model_alone():
    links = {("test", "A"): 1, ("training", "B"): 2}
    before = {"weights": "old", "breasts": [{"pair": "A", "section": "test", "links": ["wrong"]}]}
    same = judged(links, "old", before)
    assert [breast["links"] for breast in same["breasts"]] == [["wrong"], ["", ""]]
    other = judged(links, "new", before)
    assert [breast["links"] for breast in other["breasts"]] == [[""], ["", ""]]


@pytest.mark.slow
def test_the_films_are_drawn_and_listed(films, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("shipped.subprocess", SimpleNamespace(run=in_process.instead_of_subprocess))
    monkeypatch.setattr(look_at_links, "JUDGEMENTS", tmp_path / "judgements.json")
    monkeypatch.setattr(look_at_links, "SHEET", tmp_path / "sheet.jpg")
    words = ["look_at_links.py", str(films), "--output", str(tmp_path / "links")]
    monkeypatch.setattr(sys, "argv", words)
    look_at_links.main()
    content = json.loads((tmp_path / "judgements.json").read_text())
    assert [breast["pair"] for breast in content["breasts"]] == ["test_R", "validation_R", "training_R"]
    links = {len(breast["links"]) for breast in content["breasts"]}
    assert len(links) == 1  # it is one breast three times
    assert f"{3 * links.pop()} links in 3 breasts" in capsys.readouterr().out
    with (
        Image.open(tmp_path / "links" / "training_R.png") as picture,
        Image.open(tmp_path / "sheet.jpg") as sheet,
    ):
        assert sheet.width == look_at_links.COLUMNS * picture.width
