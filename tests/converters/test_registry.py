"""The registry is all that the command line knows about data sets."""

import inspect

import pytest
from dicom_files import mammogram, ramp, save

from clnet.cli import convert as command
from clnet.cli.main import main
from clnet.converters import registry
from clnet.converters.annotated import AnnotatedDataset, AnnotatedView
from clnet.converters.registry import CONVERTERS, DatasetConverter
from clnet.data.datalist import read_datalist


def parameter(option):
    return option.lstrip("-").replace("-", "_")


@pytest.mark.parametrize("converter", CONVERTERS, ids=lambda converter: converter.name)
def test_every_option_is_an_argument_of_the_reader(converter):
    module = converter._load()
    workspace, *others = inspect.signature(module.read).parameters
    assert workspace == "workspace"
    assert others == [parameter(option) for option in converter.options]
    assert hasattr(module, "count_tables") == converter.can_count_tables


def test_a_data_set_needs_a_reader_and_an_entry_in_the_registry(tmp_path, capsys, monkeypatch):
    def read(workspace, colour):
        assert colour == "grey"
        (file,) = workspace.headers(workspace.files())
        return AnnotatedDataset("Mine", [AnnotatedView(file, (40, 30), "patient", "study", "L", "cc")])

    module = type("mine", (), {"read": staticmethod(read)})
    monkeypatch.setattr(registry.importlib, "import_module", lambda name: module)
    mine = DatasetConverter("mine", "my data set", "mine", {"--colour": {"help": "of the images"}})
    monkeypatch.setattr(command, "CONVERTERS", (mine,))
    (tmp_path / "data").mkdir()
    save(tmp_path / "data" / "1.dcm", mammogram(ramp(40, 30)))
    words = ["convert", "mine", str(tmp_path / "data"), "--output", str(tmp_path / "out"), "--colour", "grey"]
    assert main(words) == 0, capsys.readouterr().err
    datalist = read_datalist(tmp_path / "out")
    assert datalist.name == "Mine"
    assert [pair.pair_id for pairs in datalist.sections.values() for pair in pairs] == ["study_L"]
