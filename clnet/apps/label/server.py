"""MONAI Label's server with the routes for pairs; the application that uvicorn runs.

MONAI Label answers many invalid requests with status 500 and trusts its input. Here an invalid request gets
status 4xx and a message that says what is wrong, without any path of this machine.
"""

import logging
from collections.abc import Awaitable, Callable

import requests
from fastapi import HTTPException, Request, Response
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import JSONResponse
from monailabel.app import app
from monailabel.config import settings
from monailabel.interfaces.exception import MONAILabelException
from monailabel.interfaces.utils.app import app_instance

from clnet.apps.label.access import HEADERS, reason_to_refuse_body
from clnet.apps.label.request_errors import RequestError
from clnet.apps.label.routes import router
from clnet.errors import ClnetError
from clnet.files import WriteError

logger = logging.getLogger(__name__)

app.include_router(router)


def error_response(status: int, message: str) -> JSONResponse:
    """A response that says what is wrong; files are named by their image ids."""
    message = message.replace(f"{settings.MONAI_LABEL_APP_DIR}/", "")
    return JSONResponse({"detail": app_instance().datastore().without_folder(message)}, status)


@app.exception_handler(ClnetError)
def on_clnet_error(request: Request, error: ClnetError) -> Response:
    """Input that clnet rejects, or a disk that is full."""
    if isinstance(error, WriteError):
        return error_response(507, str(error))
    return error_response(error.status if isinstance(error, RequestError) else 422, str(error))


@app.exception_handler(MONAILabelException)
def on_monailabel_error(request: Request, error: MONAILabelException) -> Response:
    """An image, a label or a strategy that MONAI Label does not know."""
    return error_response(404, error.msg)


@app.exception_handler(HTTPException)
async def on_http_error(request: Request, error: HTTPException) -> Response:
    """MONAI Label's own error responses; it uses 500 for some invalid requests."""
    if error.status_code == 500:
        return error_response(422, str(error.detail))
    return await http_exception_handler(request, error)


@app.exception_handler(requests.RequestException)
def on_upstream_error(request: Request, error: requests.RequestException) -> Response:
    """A DICOMweb or authentication server that fails or does not answer."""
    logger.warning("%s: %s", request.url.path, type(error).__name__)
    if error.response is not None and error.response.status_code in (400, 401, 403, 404):
        status = error.response.status_code
        return error_response(status, f"the server behind this one answers with status {status}")
    return error_response(503, f"the server behind this one does not answer ({type(error).__name__})")


@app.exception_handler(FileNotFoundError)
def on_missing_file(request: Request, error: FileNotFoundError) -> Response:
    """What MONAI Label expects on every machine, such as nvidia-smi for /logs/gpu."""
    if request.url.path.startswith(f"{router.prefix}/"):
        raise error
    return error_response(404, f"{request.url.path} needs what this machine does not have")


@app.exception_handler(AssertionError)
@app.exception_handler(AttributeError)
@app.exception_handler(LookupError)
@app.exception_handler(TypeError)
@app.exception_handler(ValueError)
def on_unchecked_value(request: Request, error: Exception) -> Response:
    """Values that MONAI Label does not check, such as params that are not JSON."""
    if request.url.path.startswith(f"{router.prefix}/"):
        raise error  # our routes check their input: this is our own fault, and a status of 500
    logger.warning("%s: invalid request", request.url.path, exc_info=error)
    return error_response(422, f"invalid request ({type(error).__name__}); check its parameters")


@app.middleware("http")
async def check_request(request: Request, respond: Callable[[Request], Awaitable[Response]]) -> Response:
    """Refuse what no endpoint of MONAI Label would refuse.

    MONAI Label accepts requests from pages of all sites; its own setting for this keeps it from starting.
    """
    refusal = (
        app_instance().access.reason_to_refuse(request)
        or reason_to_refuse_body(request)
        or reason_to_refuse(request)
    )
    response = await respond(request) if refusal is None else error_response(*refusal)
    response.headers.update(HEADERS)
    return response


def reason_to_refuse(request: Request) -> tuple[int, str] | None:
    """Status and message if the request must be refused."""
    parts = request.scope["path"].strip("/").split("/")
    instance = app_instance()
    tasks = {"train": instance._trainers, "scoring": instance._scoring_methods, "batch": instance._infers}
    if ".." in parts:
        return 404, "'..' is not allowed in a path"
    if parts[0] in tasks and request.method == "POST" and parts[-1] not in (*tasks[parts[0]], parts[0]):
        return 404, f"there is no {parts[0]} task {parts[-1]!r}; expected {', '.join(tasks[parts[0]])}"
    if parts[0] == "model" and request.method != "GET":
        return 403, "only training changes the model"
    return None
