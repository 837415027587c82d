"""The score for pairs, fitted to differences whose distribution is known."""

import numpy as np
import pytest
import yaml
from fit_consistency import Known, fit, main, measure, strangers, threshold_of
from monai.bundle import ConfigParser
from scipy.stats import mannwhitneyu, multivariate_normal

from clnet.data.datalist import read_datalist
from clnet.findings.consistency import MEASURES
from clnet.phantom import PhantomSettings, make_phantom


@pytest.fixture(scope="module")
def known():
    """Breasts and strangers, Gaussian around one offset, and their covariances."""
    rng = np.random.default_rng(0)
    mixing, offsets, ratios = np.eye(8) + 0.3 * rng.normal(size=(8, 8)), rng.normal(size=8), [20, 5, 3, 2]
    spreads = mixing @ mixing.T, mixing @ np.diag([*ratios, 1, 1, 1, 1]) @ mixing.T
    same, other = (rng.multivariate_normal(offsets, spread, 4000) for spread in spreads)
    return same, other, offsets, spreads


def test_the_fitted_score_is_nearly_that_of_the_true_densities(known):
    same, other, offsets, spreads = known
    model = fit(same, other, MEASURES, directions=4)
    assert model.ratios == pytest.approx([20, 5, 3, 2], rel=0.1)
    parts = [same[:200], other[:200]]
    true = [
        multivariate_normal.logpdf(part, offsets, spreads[0])
        - multivariate_normal.logpdf(part, offsets, spreads[1])
        for part in parts
    ]
    found = [[model.score(one) for one in part] for part in parts]
    gaps = np.abs(found - 1 / (1 + np.exp(-np.array(true))))
    assert gaps.mean() < 0.03


def test_measures_that_are_left_out_do_not_count(known):
    same, other, *_ = known
    model = fit(same, other, ["depth", "area"], directions=2)
    unused = [index for index, name in enumerate(MEASURES) if name not in ("depth", "area")]
    assert not model.directions[:, unused].any()
    assert model.directions[:, [0, 2]].all()


def test_area_sensitivity_and_false_alarms_are_those_of_the_scores(known):
    same, other, *_ = known
    model = fit(same, other, MEASURES, directions=4)
    parts = [
        Known(same[:300], [f"p{n // 2}" for n in range(300)]),
        Known(other[:200], [f"p{n}" for n in range(200)]),
    ]
    scores = [[model.score(one) for one in part.differences] for part in parts]
    threshold = threshold_of(model, parts[0])
    found = measure(model, *parts, threshold)
    area = mannwhitneyu(*scores).statistic / (300 * 200)
    assert found["area"]["value"] == pytest.approx(area)
    assert found["area"]["low"] < area < found["area"]["high"]
    assert found["sensitivity"]["value"] == np.mean([score < threshold for score in scores[1]])
    assert found["false_alarms"]["value"] == pytest.approx(0.05, abs=0.004)


@pytest.fixture(scope="module")
def phantom(tmp_path_factory):
    folder = tmp_path_factory.mktemp("phantom")
    make_phantom(folder, PhantomSettings(40, rows=96, columns=64), workers=1)
    return folder


def test_the_command_prints_settings_as_a_config_has_them(phantom, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["fit_consistency.py", str(phantom), "--size", "96", "48"])
    main()
    settings, _, measured = capsys.readouterr().out.partition("\n\n")
    parser = ConfigParser(yaml.safe_load(settings))
    assert parser.get_parsed_content("consistency").directions.shape == (4, 8)
    assert 0 <= parser["min_consistency"] <= 1
    assert "10 breasts, 10 strangers" in measured
    assert "| depth alone |" in measured


def test_strangers_are_of_another_patient_and_the_same_side(phantom):
    pairs = [pair for section in read_datalist(phantom).sections.values() for pair in section]
    of_file = {pair.views["mlo"].image: pair for pair in pairs}
    made = strangers(pairs)
    assert len(made) == len(pairs)
    for pair in made:
        partner = of_file[pair.views["mlo"].image]
        assert partner.patient_id != pair.patient_id
        assert partner.laterality == pair.laterality
