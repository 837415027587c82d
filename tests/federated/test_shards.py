"""The data of each site: whole patients, in equal parts, nobody at two sites."""

import pytest
from random_findings import random_datalist

from clnet.apps.federated.shards import SitesError, write_shards
from clnet.data.datalist import Datalist, read_datalist, write_datalist


@pytest.fixture
def dataset(tmp_path):
    """20 patients to train on, 7 to validate on and 3 to test on, with two pairs each."""
    pairs = random_datalist(60)["test"]
    sections = {"training": pairs[:40], "validation": pairs[40:54], "test": pairs[54:]}
    (tmp_path / "data").mkdir()
    write_datalist(Datalist("random", sections), tmp_path / "data" / "datalist.json")
    return tmp_path / "data"


def patients(datalist, *sections):
    return {pair.patient_id for section in sections for pair in datalist[section]}


def test_sites_share_the_test_section_and_no_patient_of_the_others(dataset, tmp_path):
    whole = read_datalist(dataset)
    shards = [read_datalist(folder) for folder in write_shards(dataset, 3, tmp_path / "sites").values()]
    for section in ("training", "validation"):
        parts = [patients(shard, section) for shard in shards]
        assert set().union(*parts) == patients(whole, section)
        assert sum(map(len, parts)) == len(patients(whole, section)), "somebody is at two sites"
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for shard in shards:
        assert [pair.pair_id for pair in shard["test"]] == [pair.pair_id for pair in whole["test"]]


def test_images_stay_where_they_are(dataset, tmp_path):
    images = {pair.pair_id: pair.cc.image.resolve() for pair in read_datalist(dataset)["test"] if pair.cc}
    for folder in write_shards(dataset, 2, tmp_path / "sites").values():
        again = {pair.pair_id: pair.cc.image.resolve() for pair in read_datalist(folder)["test"] if pair.cc}
        assert again == images


def test_more_sites_than_patients_are_refused(dataset, tmp_path):
    with pytest.raises(SitesError, match="too few patients for 1000 sites"):
        write_shards(dataset, 1000, tmp_path / "sites")
