"""The axes of depth, fitted to data whose geometry is known."""

import pytest
from fit_axes import fit_axes

from clnet.data.datalist import read_datalist
from clnet.phantom import PhantomSettings, make_phantom


@pytest.mark.slow
def test_in_the_phantom_depth_is_straight_in_both_views(tmp_path):
    make_phantom(tmp_path, PhantomSettings(pairs=120, rows=160, columns=112), workers=1)
    sections = read_datalist(tmp_path).sections
    fit = fit_axes([pair for pairs in sections.values() for pair in pairs], (160, 96))
    (cc_x, cc_row, cc_width, _), (mlo_x, mlo_row, mlo_width, _) = fit.axes
    assert fit.breasts >= 20
    assert (cc_x, cc_row) == (1, 0)
    assert mlo_x == pytest.approx(1, abs=0.1)
    assert mlo_row == pytest.approx(0, abs=0.1)
    # One view of a breast is as deep as the other, so that only their difference is determined.
    assert cc_width == pytest.approx(mlo_width, abs=0.1)
    assert fit.spread <= fit.straight_spread < 0.05
