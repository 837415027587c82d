"""docs/datasets.md: its commands, run on each data set in miniature, and its numbers."""

from pathlib import Path

import pytest
from dicom_files import mammogram, save
from miniatures import FIXTURES, MASS, CbisDdsm, Ddsm, Inbreast, VindrMammo, breast, chain, overlay, ring
from page_commands import commands_of
from PIL import Image

from clnet.cli.main import main
from clnet.data.datalist import read_datalist

PAGE = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")
CC, MLO = (5, 20, 20, 40), (8, 30, 25, 51)


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder in which the paths of the page are right: every data set in miniature under `data/`."""
    monkeypatch.chdir(tmp_path)
    cbis = CbisDdsm("data/CBIS-DDSM")
    ddsm = Ddsm("data/DDSM")
    inbreast = Inbreast("data/INbreast")
    vindr = VindrMammo("data/VinDr-Mammo")
    ddsm.case(
        "B_3024_1",
        {
            "LEFT_CC": overlay(([MASS], chain(CC))),
            "LEFT_MLO": overlay(([MASS], chain(MLO))),
            "RIGHT_CC": None,
            "RIGHT_MLO": None,
        },
    )
    rows = ["SOPInstanceUID,x_min,y_min,x_max,y_max,lesion_id"]
    table = ["patient,laterality,view,image,x_min,y_min,x_max,y_max,mass_shape,density"]
    for name in ("archive", "images"):
        Path("data", name).mkdir()
    for number, (view, box) in enumerate((("CC", CC), ("MLO", MLO))):
        cbis.mass("P_00001", "LEFT", view, 1, box)
        inbreast.image(f"100{number}", "6c613a14b80a8591", "L", view, [("Mass", ring(box))])
        vindr.image("study", f"image{number}", "L", view, [(["Mass"], box)])
        dataset = mammogram(breast(90, 60, "L"), ViewPosition=view)
        save(Path(f"data/archive/{number}.dcm"), dataset)
        rows.append(f"{dataset.SOPInstanceUID},{','.join(map(str, box))},1")
        Image.fromarray(breast(90, 60, "L", top=255, dtype="uint8")).save(f"data/images/{number}.jpg")
        table.append(f"P1,left,{view},{number}.jpg,{','.join(map(str, box))},OVAL,C")
    Path("data/boxes.csv").write_text("\n".join(rows) + "\n")
    Path("data/table.csv").write_text("\n".join(table) + "\n")
    for data in (cbis.tables, inbreast.table, vindr.table):
        data()
    return tmp_path


def test_every_command_of_the_page_runs(checkout, capsys):
    ran = list(commands_of("docs/datasets.md"))
    for words in ran:
        assert words[0] == "clnet"
        assert main(words[1:]) == 0, capsys.readouterr()
    assert {words[2] for words in ran if words[1] == "convert"} == {
        "cbis-ddsm",
        "ddsm",
        "inbreast",
        "vindr-mammo",
        "dicom",
        "table",
    }
    for name in ("cbis-ddsm", "ddsm", "inbreast", "vindr-mammo", "archive", "table"):
        out = checkout / "output" / name
        written = {"datalist.json", "conversion.json", "check.png", ".conversion-cache.json"}
        assert {file.name for file in out.iterdir()} == written | ({"images"} if name == "ddsm" else set())
        pairs = [pair for section in read_datalist(out).sections.values() for pair in section]
        linked = next(pair for pair in pairs if pair.links)
        assert linked.cc.boxes.tolist() == [list(CC)]
        assert linked.mlo.boxes.tolist() == [list(MLO)]


def test_the_counts_of_the_page_are_those_of_the_real_table(capsys):
    if not FIXTURES.exists():
        pytest.skip("the full fixture is not here")
    assert main(["convert", "cbis-ddsm", str(FIXTURES), "--table-only"]) == 0
    assert f"```text\n{capsys.readouterr().out}```" in PAGE
