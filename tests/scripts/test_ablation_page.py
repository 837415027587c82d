"""The pages of the evidence tell the numbers of the evaluations, and how sure they are."""

import json
import re
import shlex
from pathlib import Path

import ablation
import compare_links
import numpy as np
import pytest
from ablations.evidence import BESIDE, evidence
from ablations.figure import draw
from ablations.kept import read_runs
from ablations.numbers import Numbers, holm, measures
from ablations.outcome import unpack
from ablations.page import pages, readme_passage
from ablations.tables import QUESTIONS, RATES, TABLES
from ablations.words import first_sentence, more_answers, verdict
from kept_runs import kept_run, outcome_of
from page_text import between_marks

from clnet.evaluation.bootstrap import draw_patients
from clnet.evaluation.resampled import statistics

ROOT = Path(__file__).parents[2]
SKILLS = {
    **{("vild", seed): 3 - seed for seed in range(2)},
    **{("clnet", seed): 0.4 + 0.3 * seed for seed in range(3)},
}


@pytest.fixture(scope="module")
def runs():
    return {(name, seed): kept_run(name, seed, skill=skill) for (name, seed), skill in SKILLS.items()}


def made_of(runs, resamples=100):
    return evidence(runs, "./scripts/ablation", resamples)


@pytest.mark.parametrize("detections", [4, 30])
def test_an_outcome_gives_the_numbers_of_its_record_from_a_fraction_of_its_bytes(detections):
    text, evaluation = outcome_of(pairs=120, detections=detections, links=6)
    weights = draw_patients(evaluation.record.patients, 200, seed=4)
    theirs, ours = statistics(evaluation.record, weights), measures(unpack(text), weights)
    for iou in (0.2, 0.5):
        for rate in RATES:
            np.testing.assert_array_equal(ours[f"iou={iou}/recall/{rate}"], theirs[iou].recall[rate])
        for part, name in (("links", "links"), ("links_of_several", "links of several")):
            for measure, values in getattr(theirs[iou], part).items():
                np.testing.assert_array_equal(ours[f"iou={iou}/{name}/{measure}"], values)
    assert len(text) < 130 * 120


def test_the_recall_of_a_group_is_that_of_the_evaluation():
    text, evaluation = outcome_of(pairs=120)
    found = measures(unpack(text), np.ones((1, evaluation.record.patients)))
    groups = evaluation.metrics["subgroups"]["iou=0.2"]
    assert groups["view"].keys() == {"cc", "mlo"}
    for label, content in groups["view"].items():
        for rate in RATES:
            ours = found[f"iou=0.2/view/{label}/recall/{rate}"][0]
            assert ours == pytest.approx(content["recall"][rate]["value"])
    boxes = {label: groups["seen in"][label]["boxes"] for label in groups["seen in"]}
    assert sum(boxes.values()) == len(evaluation.record.box_image)


def test_a_row_is_the_mean_over_seeds_and_its_interval_is_wider_than_that_of_patients_alone(runs):
    of_both = Numbers(runs, resamples=400).row("vild")["iou=0.5/recall/1"]
    assert of_both["value"] == pytest.approx(np.mean(list(of_both["by_seed"].values())))
    widths = []
    for seed in (0, 1):
        alone = Numbers({("vild", 0): runs["vild", seed]}, resamples=400).row("vild")["iou=0.5/recall/1"]
        widths.append(alone["high"] - alone["low"])
    assert of_both["high"] - of_both["low"] > max(widths)


def test_a_difference_is_over_all_seeds_of_either_side(runs):
    numbers = Numbers(runs, resamples=300)
    ours, theirs = (numbers.row(name)["iou=0.5/recall/1"] for name in ("clnet", "vild"))
    minus = numbers.difference("clnet", "vild")["iou=0.5/recall/1"]
    assert minus["value"] == pytest.approx(ours["value"] - theirs["value"])
    assert minus["low"] < minus["value"] < minus["high"]
    assert numbers.difference("clnet", "geometric") is None
    same = numbers.difference("vild", "vild")["iou=0.5/recall/1"]
    assert same["p"] == 1


def test_p_values_are_corrected_as_holm_did():
    # By hand: 0.01·4, max(0.04, 0.02·3), max(0.06, 0.03·2), and 0.9·1.
    assert holm([0.02, 0.9, 0.01, 0.03]) == pytest.approx([0.06, 0.9, 0.04, 0.06])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


def test_answers_are_corrected_for_their_number_and_one_seed_answers_nothing(runs):
    one_more = {**runs, ("deformable_detr", 0): kept_run("deformable_detr", 0, skill=0.1)}
    answers = made_of(one_more)["answers"]
    assert [(answer["ours"], answer["theirs"]) for answer in answers] == [
        ("vild", "deformable_detr"),
        ("clnet", "vild"),
    ]
    assert "corrected" not in answers[0]
    assert verdict(answers[0]).endswith("too few seeds to say")
    assert answers[1]["corrected"] == answers[1]["p"]  # the only one of several seeds


def test_a_verdict_follows_from_sign_and_corrected_p():
    answer = {"value": 0.05, "low": 0.01, "high": 0.09, "corrected": 0.012}
    assert verdict(answer) == "yes: +5.0 (+1.0 to +9.0), p 0.012"
    assert verdict({**answer, "corrected": 0.2}).startswith("not shown: +5.0")
    worse = {"value": -0.05, "low": -0.09, "high": -0.01, "corrected": 0.001}
    assert verdict(worse).startswith("no, the opposite: -5.0")


def test_the_page_says_first_whether_films_gain_and_if_the_interval_holds_zero():
    def first(ours, theirs):
        films = {
            ("geometric_film", 0): kept_run("geometric_film", 0, skill=ours),
            ("deformable_detr_film", 0): kept_run("deformable_detr_film", 0, skill=theirs),
        }
        return pages(made_of(films))["evidence.md"].split("\n\n")[1]

    words = (
        r"\*\*On films, Geometric CL-Net finds \d+\.\d percentage points more masses than Deformable DETR\*\*"
    )
    assert re.match(words, first(4, 0.1))
    assert first(4, 0.1).endswith("Where there is one seed, another might change that.")
    assert first(1, 1).endswith("The interval holds zero: a gain is not shown.")


def test_what_the_page_says_first_is_shown_only_if_it_is_after_the_correction_too():
    answer = {"table": "film", "ours": "geometric_film", "theirs": "vild_film", "unit": "R@0.25"}
    answer |= {"seeds": [3, 3], "value": 0.05, "low": 0.01, "high": 0.09}
    assert first_sentence([{**answer, "corrected": 0.04}]).endswith("3 and 3 seeds).")
    assert first_sentence([{**answer, "corrected": 0.06}]).endswith(
        "Corrected for the number of questions (p 0.060), a gain is not shown."
    )


def test_rows_that_were_not_run_are_left_out_and_the_papers_numbers_are_shown(runs):
    made = pages(made_of(runs))
    assert set(made) == {"evidence.md", *(f"evidence/{n}.md" for n in ("README", "phantom", "machine_time"))}
    text = made["evidence/phantom.md"]
    assert "Deformable DETR" not in text
    assert "Not trained yet, with the number of seeds: Deformable DETR (3), VILD (1)" in made["evidence.md"]
    assert re.search(
        r"\| CL-Net: VILD and Lesion Linker \|.*\| 3 \| 78.1 / 83.1 / 88.0 / 92.4 / 95.0 \|", text
    )
    assert "Links in %" in text
    assert "Links that say *only in this view*" in text


def test_groups_of_films_are_shown_with_what_the_second_view_brings():
    films = {(name, 0): kept_run(name, 0, skill=2) for name in ("geometric_film", "one_view_film")}
    text = pages(made_of(films))["evidence/film.md"]
    groups = re.findall(r"^\| ([\w ]+) \| \d.*\| [+-]\d", text, re.MULTILINE)
    assert groups[:3] == ["all", "both views", "one view"]
    assert "view cc" in groups


def test_the_cost_is_in_cpu_hours_and_the_last_quarter_tells_whether_validation_was_flat(runs):
    made = pages(made_of(runs))
    assert "5 trainings took 2.5 CPU hours" in made["evidence.md"]
    assert "| `vild` | 0 | 30 | 8 | 75.0 | +0.0 | c0dec0dec0de |" in made["evidence/machine_time.md"]


def test_the_picture_shows_every_table(tmp_path, runs):
    draw(made_of(runs)["tables"], tmp_path / "evidence.png")
    assert (tmp_path / "evidence.png").stat().st_size > 10_000


def test_runs_of_different_pairs_are_not_put_side_by_side(runs):
    with pytest.raises(ValueError, match="different pairs"):
        Numbers({**runs, ("geometric", 0): kept_run("geometric", 0, pairs=40)})


def test_questions_are_of_rows_of_their_table():
    for question in QUESTIONS:
        assert {question.ours, question.theirs} <= {row.setting for row in TABLES[question.table].rows}


def test_the_evidence_pages_and_the_readme_report_the_numbers_that_are_kept():
    docs = ROOT / "docs"
    content = json.loads((docs / "evidence.json").read_text(encoding="utf-8"))
    made = pages(content)
    for name, text in made.items():
        assert (docs / name).read_text(encoding="utf-8") == text, name
    assert {f"evidence/{path.name}" for path in (docs / "evidence").glob("*.md")} == set(made) - {
        "evidence.md"
    }
    kept = {(run["setting"], run["seed"]) for run in content["runs"]}
    assert kept == set(read_runs(docs / "evidence" / "runs"))
    for name, file in BESIDE.items():
        assert content[name] == json.loads((ROOT / file).read_text(encoding="utf-8")), name
    assert between_marks(ROOT / "README.md", "evidence") == readme_passage(content)


def test_judgements_by_eye_are_counted_with_and_without_breasts_of_the_training_section():
    breasts = [
        {"pair": "A", "section": "test", "links": ["plausible", "wrong"]},
        {"pair": "B", "section": "validation", "links": []},
        {"pair": "C", "section": "training", "links": ["plausible"]},
    ]
    (text,) = more_answers({**made_of({}), "links_by_eye": {"breasts": breasts}})
    assert "of 3 links in 3 such breasts 2 are plausible, 1 wrong, and 0 cannot be decided" in text
    assert "in the 2 of these breasts that training has not seen, 1 of 2 are plausible" in text


def test_the_cost_of_a_wrong_partner_is_that_of_all_breasts():
    points = [
        {"level": level, "change": {"value": -level / 4, "low": -level / 3, "high": -level / 5}}
        for level in (0.5, 1)
    ]
    film = {"disturbances": {"wrong_partner": points, "missing_view": points[1:]}}
    (text,) = more_answers({**made_of({}), "robustness": {"film": film}})
    assert "by -25.0 (-33.3 to -20.0) points, one view alone by -25.0" in text


def test_links_of_the_evidence_pages_lead_somewhere_and_their_commands_are_understood():
    docs = ROOT / "docs"
    for page in [docs / "evidence.md", *(docs / "evidence").glob("*.md")]:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#\s]+)", text):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
        for command in re.findall(r"```bash\n\./scripts/(\w+)(.*)\n```", text):
            {"ablation": ablation, "compare_links": compare_links}[command[0]].options_of(
                shlex.split(command[1])
            )
    front = (docs / "evidence.md").read_text(encoding="utf-8")
    assert len(front.split()) < 1500
