"""The evaluation at the end of the bundle's evaluator."""

from ignite.engine import Engine
from random_findings import random_datalist, random_findings

from clnet.data.datalist import write_datalist
from clnet.evaluation.folder import read_metrics
from clnet.evaluation.protocols import settings_of
from clnet.findings.types import write_findings
from clnet.runs.evaluation_writer import EvaluationWriter


def test_the_findings_are_evaluated_by_the_protocol(tmp_path):
    datalist = random_datalist(10)
    write_datalist(datalist, tmp_path / "data" / "datalist.json")
    write_findings(random_findings(datalist["test"]), tmp_path / "run" / "findings.json")
    engine = Engine(lambda _engine, _batch: None)
    engine.state.rank = 0
    EvaluationWriter(tmp_path / "run", tmp_path / "data", "test", report=False, protocol="film").attach(
        engine
    )
    engine.run([0])
    metrics = read_metrics(tmp_path / "run")
    assert metrics["protocol"] == "protocol film"
    assert metrics["settings"]["count_duplicates"] is settings_of("film").count_duplicates is True
