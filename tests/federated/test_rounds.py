"""Which global model is the best: by the metric's mean over sites, each weighted by its pairs."""

import json

from clnet.apps.federated.record import Rounds, Validation


def round_of(**recalls):
    """A round with 1 pair at site a and 3 at site b."""
    return {
        site: Validation(pairs, 5, {"mean_recall": recalls[site]}) for site, pairs in (("a", 1), ("b", 3))
    }


def test_a_site_with_more_pairs_counts_more():
    rounds = Rounds("mean_recall", [round_of(a=1.0, b=0.2), round_of(a=0.0, b=0.6)])
    assert rounds.means() == [(1 * 1.0 + 3 * 0.2) / 4, (1 * 0.0 + 3 * 0.6) / 4]
    assert rounds.best() == 1


def test_the_last_round_can_be_the_best_and_of_equals_the_first_is():
    rounds = Rounds("mean_recall", [round_of(a=0.1, b=0.1), round_of(a=0.5, b=0.5)])
    assert rounds.best() == 1
    rounds.sites.append(round_of(a=0.5, b=0.5))
    assert rounds.best() == 1


def test_the_record_says_what_each_site_found(tmp_path):
    Rounds("mean_recall", [round_of(a=1.0, b=0.2)]).write(tmp_path)
    written = json.loads((tmp_path / "federation.json").read_text())
    assert written["best_round"] == 1
    [first] = written["rounds"]
    assert first["round"] == 1
    assert first["sites"]["b"] == {"pairs": 3, "steps": 5, "metrics": {"mean_recall": 0.2}}
