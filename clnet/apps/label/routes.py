"""The routes of the annotation page, under /clnet/; documented in docs/label.md."""

import gzip
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from fastapi import APIRouter, Body, Depends, Header, Query, Response
from fastapi.responses import FileResponse
from monailabel.config import settings
from monailabel.endpoints.user.auth import RBAC, User
from monailabel.interfaces.utils.app import app_instance

from clnet.apps.label.labels import label_of, remove_pair_label, save_pair_label
from clnet.apps.label.pairs import ImagePair
from clnet.apps.label.request_errors import NotFoundError
from clnet.apps.label.responses import lesions_of
from clnet.data.pair import VIEW_NAMES
from clnet.data.reader import read_image

PAGE = Path(__file__).parent / "page"
MEDIA_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
WHITE = 65535

reader = Depends(RBAC(settings.MONAI_LABEL_AUTH_ROLE_USER))
Annotator = Annotated[User, Depends(RBAC(settings.MONAI_LABEL_AUTH_ROLE_ANNOTATOR))]
ViewName = Literal["cc", "mlo"]

router = APIRouter(prefix="/clnet", tags=["CL-Net"])


@router.get("/pairs", dependencies=[reader], summary="All pairs")
def list_pairs() -> dict[str, Any]:
    """The pairs of the datastore, and the images that are not part of one."""
    catalog = app_instance().catalog
    pairs = catalog.pairs(fresh=True)
    return {
        "pairs": [
            {
                "pair_id": pair.pair_id,
                "laterality": pair.breast.pair.laterality,
                **{view: pair.images.get(view) for view in VIEW_NAMES},
                "labelled": label_of(catalog.datastore, pair) is not None,
            }
            for pair in pairs
        ],
        "left_out": [{"image": image, "reason": reason} for image, reason in sorted(pairs.left_out.items())],
    }


@router.get("/pairs/{pair_id}", dependencies=[reader], summary="One pair")
def get_pair(pair_id: str) -> dict[str, Any]:
    """The views of a pair and its label."""
    catalog = app_instance().catalog
    pair = catalog.pairs()[pair_id]
    return {
        "pair_id": pair.pair_id,
        "laterality": pair.breast.pair.laterality,
        "views": {view: _view(pair, view) for view in VIEW_NAMES},
        "label": label_of(catalog.datastore, pair),
    }


@router.get("/pairs/{pair_id}/findings", dependencies=[reader], summary="Findings of the model")
def get_findings(
    pair_id: str, min_score: Annotated[float | None, Query(ge=0, le=1)] = None
) -> dict[str, Any]:
    """The lesions of a pair, in pixels of the stored images, as `clnet predict` reports them."""
    app = app_instance()
    pair = app.catalog.pairs()[pair_id]
    model, _, findings = app.model.find(app.catalog.fetched(pair))
    least = model.min_score if min_score is None else min_score
    return {
        "model": model.name,
        "notice": model.notice,
        "min_score": model.min_score,
        "lesions": lesions_of(findings, least),
    }


@router.get("/pairs/{pair_id}/{view}/pixels", dependencies=[reader], summary="Pixels of a view")
def get_pixels(
    pair_id: str,
    view: ViewName,
    rows: Annotated[int | None, Query(ge=1)] = None,
    accept_encoding: Annotated[str, Header()] = "",
) -> Response:
    """The grey values that the model sees, little-endian uint16, row by row; `rows` limits the resolution."""
    catalog = app_instance().catalog
    pair = catalog.pairs()[pair_id]
    if view not in pair.images:
        raise NotFoundError(f"pair {pair_id!r} has no {view} image")
    pixels = torch.from_numpy(read_image(catalog.datastore.file_of(pair.images[view])).pixels)
    low, high = pixels.min(), pixels.max()
    if rows is not None and rows < pixels.shape[0]:
        size = (rows, max(1, round(pixels.shape[1] * rows / pixels.shape[0])))
        pixels = F.interpolate(pixels[None, None], size, mode="area")[0, 0]
    grey = ((pixels - low) / max(float(high - low), 1e-6) * WHITE).round().clamp(0, WHITE)
    content = grey.numpy().astype(np.dtype("<u2")).tobytes()
    headers = {"X-Rows": str(grey.shape[0]), "X-Columns": str(grey.shape[1]), "Vary": "Accept-Encoding"}
    if "gzip" in accept_encoding:
        content, headers["Content-Encoding"] = gzip.compress(content, 1), "gzip"
    return Response(content, media_type="application/octet-stream", headers=headers)


@router.put("/pairs/{pair_id}/label", summary="Save a label")
def put_label(pair_id: str, user: Annotator, label: Annotated[Any, Body()]) -> dict[str, Any]:
    """Save the boxes and links of a pair as the label of both images."""
    app = app_instance()
    pair = app.catalog.pairs()[pair_id]
    save_pair_label(app.datastore(), pair, label, {"pair_id": pair_id, "user": user.username})
    for image in pair.images.values():
        app.on_save_label(image, image)
    return get_pair(pair_id)


@router.delete("/pairs/{pair_id}/label", summary="Remove a label")
def delete_label(pair_id: str, user: Annotator) -> dict[str, Any]:
    """Remove the label of both images."""
    catalog = app_instance().catalog
    remove_pair_label(catalog.datastore, catalog.pairs()[pair_id])
    return get_pair(pair_id)


@router.get("/{name:path}", include_in_schema=False)
def get_page(name: str) -> FileResponse:
    """The page itself, without authentication: it shows no data until the other routes respond."""
    files = {file.name: file for file in PAGE.iterdir() if file.suffix in MEDIA_TYPES}
    file = files.get(name or "index.html")
    if file is None:
        raise NotFoundError(f"there is no /clnet/{name[:80]}")
    return FileResponse(file, media_type=MEDIA_TYPES[file.suffix], headers={"Cache-Control": "no-cache"})


def _view(pair: ImagePair, view: str) -> dict[str, Any] | None:
    if view not in pair.images:
        return None
    rows, columns = pair.sizes[view]
    return {
        "image": pair.images[view],
        "rows": rows,
        "columns": columns,
        "warnings": list(pair.warnings[view]),
    }
