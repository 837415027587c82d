"""The frame of both views, fitted to data whose geometry is known."""

import pytest
from fit_frame import fit_frame

from clnet.data.datalist import read_datalist
from clnet.phantom import PhantomSettings, make_phantom


@pytest.mark.slow
def test_in_the_phantom_depth_is_straight_in_both_views(tmp_path):
    make_phantom(tmp_path, PhantomSettings(pairs=120, rows=160, columns=112), workers=1)
    sections = read_datalist(tmp_path).sections
    fit = fit_frame([pair for pairs in sections.values() for pair in pairs], (160, 96))
    (cc_x, cc_y, cc_width, _), cc_row = fit.cc
    (mlo_x, mlo_y, mlo_width, _), (_, row_y, _, _) = fit.mlo
    assert fit.breasts >= 20
    assert (cc_x, cc_y) == (1, 0)
    assert cc_row == (0, 1, 0, 0)
    assert mlo_x == pytest.approx(1, abs=0.1)
    assert mlo_y == pytest.approx(0, abs=0.1)
    # One view of a breast is as deep as the other, so that only their difference is determined.
    assert cc_width == pytest.approx(mlo_width, abs=0.1)
    assert fit.spreads[0] <= fit.from_wall < 0.05
    assert 0 < row_y < 1, "rows of a mass correlate"
