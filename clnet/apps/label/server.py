"""MONAI Label's server with the routes for pairs; what uvicorn runs."""

from clnet.apps.label import compatibility  # noqa: F401  before MONAI Label
from fastapi import Request
from fastapi.responses import JSONResponse
from monailabel.app import app

from clnet.apps.label.refusals import RequestError
from clnet.apps.label.routes import router
from clnet.errors import ClnetError

app.include_router(router)


@app.exception_handler(ClnetError)
def refuse(request: Request, error: ClnetError) -> JSONResponse:
    """Tell what is wrong with a request."""
    status = error.status if isinstance(error, RequestError) else 422
    return JSONResponse({"detail": str(error)}, status)
