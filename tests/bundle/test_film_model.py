"""The film model: safe to load, and worth what the pages, the metadata and its record say."""

import json

import pytest
import torch
import yaml
from bundle_runs import ROOT
from monai.bundle import ConfigParser
from page_text import between_marks
from ship_model import CARD, film_passages

from clnet.evaluation.protocols import PROTOCOLS
from clnet.predict.model_name import weights_digest

CONFIGS = ROOT / "bundle" / "configs"
WEIGHTS = ROOT / "bundle" / "models" / "model.pt"
RECORD = WEIGHTS.parent / "record"
EVALUATIONS = {
    "test": ("test", "film"),
    "test_default": ("test", "default"),
    "test_transreg": ("test", "transreg"),
    "validation": ("validation", "film"),
}


def recorded(name):
    return json.loads((RECORD / name).read_text(encoding="utf-8"))


def test_it_holds_plain_weights_that_fit_the_config():
    assert WEIGHTS.stat().st_size <= 20e6
    weights = torch.load(WEIGHTS, weights_only=True)
    files = [str(CONFIGS / f"{name}.yaml") for name in ("train", "film")]
    parser = ConfigParser(ConfigParser.load_config_files(files))
    parser.get_parsed_content("network_def").load_state_dict(weights)


def test_the_pages_tell_the_figures_of_the_record():
    for page, figures in film_passages(RECORD).items():
        assert between_marks(page, "film") == figures, page


def test_the_metadata_tell_the_figures_of_the_record():
    metadata = json.loads((CONFIGS / "metadata.json").read_text(encoding="utf-8"))
    recall = recorded("film_test.json")["detection"]["iou=0.2"]["recall"]
    for rate in ("0.125", "0.25", "0.5", "1", "2", "4"):
        assert metadata["eval_metrics"].pop(f"recall_iou0.2_fpi{rate}") == round(recall[rate]["value"], 4)
    assert metadata["eval_metrics"] == {}


@pytest.mark.parametrize("config", ["film.yaml", "inference.yaml"])
def test_the_threshold_of_reports_was_chosen_on_the_validation_section(config):
    threshold = recorded("film_threshold.json")
    assert (
        yaml.safe_load((CONFIGS / config).read_text(encoding="utf-8"))["min_score"] == threshold["min_score"]
    )
    assert threshold["validation"]["rate"] <= threshold["rate"] == 0.5
    above = recorded("film_validation.json")["detection"]["iou=0.2"]["score_above"]["0.5"]
    assert above < threshold["min_score"] <= above + 2e-4


@pytest.mark.parametrize("name", EVALUATIONS)
def test_an_evaluation_of_the_record_is_of_these_weights_by_the_rules_of_its_protocol(name):
    metrics, (section, protocol) = recorded(f"film_{name}.json"), EVALUATIONS[name]
    assert metrics["model"].split()[-1] == weights_digest(WEIGHTS)
    assert metrics["data"] == {"name": metrics["data"]["name"], "section": section}
    rules = PROTOCOLS[protocol].rules
    assert tuple(metrics["settings"]["ious"]) == rules.ious
    for rule in ("count_duplicates", "matching", "interpolate"):
        assert metrics["settings"][rule] == getattr(rules, rule)


def test_the_test_section_is_the_official_one_and_the_card_says_how_large_it_is():
    counts = recorded("film_test.json")["counts"]
    assert (counts["patients"], counts["pairs"], counts["images"], counts["lesion_boxes"]) == (
        201,
        210,
        361,
        378,
    )
    card = CARD.read_text(encoding="utf-8")
    for section in ("test", "validation"):
        counts = recorded(f"film_{section}.json")["counts"]
        alone = 2 * counts["pairs"] - counts["images"]
        row = (counts["patients"], counts["pairs"], alone, counts["images"], counts["lesion_boxes"])
        assert f"| {section} | {' | '.join(map(str, row))} |" in card


def test_every_evaluation_of_the_test_section_is_in_the_log():
    log = {entry["model"]: entry for entry in recorded("film_test_log.json")}
    for name, (section, protocol) in EVALUATIONS.items():
        if section == "test":
            assert protocol in log[recorded(f"film_{name}.json")["model"]]["protocols"]
    assert sum(entry["trial"] for entry in log.values()) == 2


def test_the_record_names_no_folder_of_a_machine_and_no_image():
    for file in RECORD.glob("film_*"):
        text = file.read_text(encoding="utf-8")
        for word in ('"/', "../", ".jpg", ".dcm", ".png"):
            assert word not in text, f"{file.name}: {word}"
