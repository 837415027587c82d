"""From the phantom's 3D breast to two images: exact projections of ellipsoids.

Body axes, in millimetres: x from the chest wall to the nipple (the depth), y from the middle of the body
outwards, z upwards; the origin is on the chest wall behind the nipple. A view looks along its beam, which is
perpendicular to x, so that the depth of a point is nearly the same in both views. Nearly, because each view
compresses and rotates the breast differently: a linear map per view (`ViewGeometry`).

Linear maps take ellipsoids to ellipsoids, and the projection of a uniform ellipsoid has a closed form. Every
box and every link of the phantom is therefore exact by construction.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Ellipsoids:
    """Uniform ellipsoids {p : (p − centre)ᵀ shape⁻¹ (p − centre) ≤ 1}.

    Attributes:
        centres: [n, 3] in mm.
        shapes: [n, 3, 3] in mm², symmetric and positive definite.
        densities: [n], attenuation per mm of path, relative to fat.
    """

    centres: Array
    shapes: Array
    densities: Array

    def mapped(self, matrix: Array, about: Array) -> "Ellipsoids":
        """The image under p → about + matrix (p − about), preserving the amount of matter."""
        return Ellipsoids(
            about + (self.centres - about) @ matrix.T,
            matrix @ self.shapes @ matrix.T,
            self.densities / abs(np.linalg.det(matrix)),
        )


@dataclass(frozen=True)
class ViewGeometry:
    """The projection of the body onto the image of one view.

    Attributes:
        name: "cc" or "mlo".
        beam: [3] unit vector along which the view looks.
        matrix: [2, 3], body mm to image mm (column direction u, row direction v).
        spacing: mm per pixel.
        row_of_nipple: the row of v = 0, in mm from the upper edge.
    """

    name: str
    beam: Array
    matrix: Array
    spacing: float
    row_of_nipple: float

    def project(self, points: Array) -> Array:
        """Body points [..., 3] in mm to image positions [..., 2] (x, y) in pixels."""
        image = points @ self.matrix.T
        image[..., 1] += self.row_of_nipple
        return image / self.spacing

    def outline_boxes(self, ellipsoids: Ellipsoids) -> Array:
        """The exact xyxy boxes [n, 4] in pixels around the projections of ellipsoids."""
        centre = self.project(ellipsoids.centres)
        half = np.sqrt(np.einsum("ij,njk,ik->ni", self.matrix, ellipsoids.shapes, self.matrix)) / self.spacing
        return np.concatenate([centre - half, centre + half], axis=1)

    def add_projections(self, image: NDArray[np.float32], ellipsoids: Ellipsoids) -> None:
        """Add to `image` [H, W] the path integral of the ellipsoids' densities.

        A ray at the reduced distance ρ from the centre of the projection passes through
        2 √(1 − ρ²) √(det shape / det projection) mm of the ellipsoid, projection = matrix · shape · matrixᵀ.
        The sum over the image is the amount of matter, in any view.
        """
        rows, columns = image.shape
        projections = self.matrix @ ellipsoids.shapes @ self.matrix.T
        chords = 2 * np.sqrt(np.linalg.det(ellipsoids.shapes) / np.linalg.det(projections))
        inverses = np.linalg.inv(projections) * self.spacing**2
        centres = self.project(ellipsoids.centres)
        boxes = self.outline_boxes(ellipsoids)
        lows = np.maximum(np.floor(boxes[:, :2]), 0).astype(int)
        highs = np.minimum(np.ceil(boxes[:, 2:]), [columns, rows]).astype(int)
        for centre, inverse, peak, (x0, y0), (x1, y1) in zip(
            centres, inverses, chords * ellipsoids.densities, lows, highs, strict=True
        ):
            if x0 >= x1 or y0 >= y1:
                continue
            dx = np.arange(x0, x1) + 0.5 - centre[0]
            dy = (np.arange(y0, y1) + 0.5 - centre[1])[:, None]
            squared = inverse[0, 0] * dx * dx + 2 * inverse[0, 1] * dx * dy + inverse[1, 1] * dy * dy
            image[y0:y1, x0:x1] += peak * np.sqrt(np.maximum(1 - squared, 0))


def view_geometry(
    name: str,
    angle: float,
    spacing: float,
    row_of_nipple: float,
    depth_scale: float,
    row_scale: float,
    depth_shear: float,
) -> ViewGeometry:
    """The projection of a view whose beam makes `angle` (radians) with the z axis.

    Args:
        name: "cc" or "mlo".
        angle: 0 is the craniocaudal view; an oblique one looks down and outwards.
        spacing: mm per pixel.
        row_of_nipple: mm from the upper edge to the row of the nipple.
        depth_scale: stretch along the depth by compression.
        row_scale: stretch across the rows by compression.
        depth_shear: mm of depth per mm across the rows (the chest wall is never quite parallel).
    """
    beam = np.array([0.0, -np.sin(angle), np.cos(angle)])
    down = -np.array([0.0, np.cos(angle), np.sin(angle)])
    depth = np.array([1.0, 0.0, 0.0])
    matrix = np.stack([depth_scale * depth + depth_shear * down, row_scale * down])
    return ViewGeometry(name, beam, matrix, spacing, row_of_nipple)


def invisible_stretch(geometry: ViewGeometry, along: Array) -> Array:
    """A map [3, 3] that changes a body but not its projection in one view.

    p → p + beam (along · p) moves matter along the beam only. With `along` parallel to the beam, it stretches
    a blob into a tube seen end-on; with `along` across the beam, it slants the blob into a sheet. In the view
    of `geometry`, neither can be distinguished from the blob.
    """
    return np.eye(3) + np.outer(geometry.beam, along)
