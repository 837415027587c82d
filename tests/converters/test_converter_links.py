"""Which mass in CC is which mass in MLO, and when they are left unlinked."""

import json
import math

import measure_links
import numpy as np
import pytest

from clnet.converters.annotated import Mass
from clnet.converters.breast_extent import BreastExtent, measure_extent
from clnet.converters.links import MIN_CONFIDENCE, certain_links, geometric_links, link_confidences
from clnet.phantom import PhantomSettings, make_phantom

# 0.1 mm per pixel, the chest wall on the left, the nipple 90 mm from it.
LEFT = BreastExtent(chest=0, nipple=900, spacing_mm=(0.1, 0.1))
RIGHT = BreastExtent(chest=1000, nipple=100, spacing_mm=(0.1, 0.1))


def mass(depth_mm, size_mm=10.0, extent=LEFT, **descriptors):
    """A square mass at a depth from the chest wall."""
    sign = 1 if extent.nipple > extent.chest else -1
    x, half = extent.chest + sign * depth_mm * 10, size_mm * 5
    return Mass((x - half, 500 - half, x + half, 500 + half), descriptors=descriptors)


def links(cc, mlo, extents=(LEFT, LEFT), **options):
    found = geometric_links(cc, mlo, extents, **options)
    return {(link.cc, link.mlo): link.confidence for link in found}


def test_masses_at_the_same_depth_are_linked():
    assert set(links([mass(20), mass(60)], [mass(62), mass(19)])) == {(0, 1), (1, 0)}


def test_depth_is_measured_from_the_chest_wall_on_whichever_side_it_lies():
    other = [mass(62, extent=RIGHT), mass(19, extent=RIGHT)]
    assert set(links([mass(20), mass(60)], other, (LEFT, RIGHT))) == {(0, 1), (1, 0)}


def test_masses_with_two_equal_partners_are_not_linked():
    assert links([mass(40), mass(41)], [mass(40), mass(41)]) == {}


def test_a_mass_far_from_every_other_is_not_linked():
    assert set(links([mass(20), mass(80)], [mass(21)])) == {(0, 0)}
    assert links([mass(10), mass(15)], [mass(80)]) == {}


def test_size_and_descriptors_distinguish_masses_at_one_depth():
    assert set(links([mass(40, 6), mass(41, 25)], [mass(41, 6), mass(40, 25)])) == {(0, 0), (1, 1)}
    described = [
        mass(40, shape="OVAL", margins="OBSCURED", pathology="BENIGN"),
        mass(41, shape="ROUND", margins="SPICULATED", pathology="MALIGNANT"),
    ]
    assert set(links(described, described[::-1])) == {(0, 1), (1, 0)}


def test_the_confidence_is_the_share_among_all_alternatives():
    """By hand: equal depth and size cost nothing; no partner costs 4."""
    alone = math.exp(-4)
    (confidence,) = links([mass(40)], [mass(40)]).values()
    assert confidence == pytest.approx(1 / (1 + alone), abs=1e-3)
    other = math.exp(-0.5 * (13.6 / 6.8) ** 2)  # two deviations of depth
    confidences = link_confidences([mass(40)], [mass(40), mass(53.6)], (LEFT, LEFT))
    np.testing.assert_allclose(
        confidences[0], [1 / (1 + other + alone), other / (1 + other + alone)], rtol=1e-6
    )


def test_a_lower_minimum_confidence_gives_no_fewer_links():
    generator = np.random.default_rng(0)
    for _ in range(50):
        cc, mlo = ([mass(depth) for depth in generator.uniform(5, 85, 3)] for _ in range(2))
        strict, loose = links(cc, mlo), links(cc, mlo, min_confidence=0.3)
        assert set(strict) <= set(loose)
        assert all(value >= MIN_CONFIDENCE for value in strict.values())


def test_film_without_spacing_is_measured_in_breast_depths():
    film, larger = BreastExtent(0, 900), BreastExtent(0, 1800)
    twice = [Mass(tuple(2 * number for number in mass(depth).box)) for depth in (62, 19)]
    assert set(links([mass(20), mass(60)], twice, (film, larger))) == {(0, 1), (1, 0)}


def test_certain_links_need_one_mass_in_each_view_or_ids():
    one, two = mass(20), mass(70)
    assert [(link.source, link.confidence) for link in certain_links([one], [two], False)] == [
        ("single_pair", 1.0)
    ]
    assert certain_links([one, two], [one], False) == []
    assert certain_links([], [one], False) == []
    named = [Mass(one.box, "a"), Mass(two.box, "b")]
    found = certain_links(named, named[::-1], True)
    assert [(link.cc, link.mlo, link.source) for link in found] == [(0, 1, "annotated"), (1, 0, "annotated")]


def test_the_chest_wall_is_found_in_the_pixels_of_both_breasts(tmp_path):
    datalist = make_phantom(tmp_path, PhantomSettings(2, rows=160, columns=112), workers=1)
    for section in datalist.sections.values():
        for pair in section:
            for seen in pair.views.values():
                extent = measure_extent(seen.image)
                edge = 0 if pair.laterality == "L" else 112
                assert abs(extent.chest - edge) <= 3
                assert abs(extent.nipple - edge) > 40
                assert extent.spacing_mm == pytest.approx([210 / 160] * 2, rel=1e-3)


@pytest.mark.slow
def test_geometric_links_on_the_phantom_are_nearly_all_right(capsys):
    """The script behind the table in docs/datasets.md, on fewer pairs."""
    measure_links.main(["--pairs", "120", "--seed", "1"])
    results = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert len(results) == 6
    for result in results.values():
        assert result["geometric"]["breasts"] >= 10
        assert result["geometric"]["precision"] >= 0.85
        assert result["geometric"]["recall"] >= 0.4
        assert result["single_pair"]["precision"] >= 0.95
