"""MONAI Label's server with the routes for pairs; what uvicorn runs.

MONAI Label answers many a bad request with status 500, and trusts whatever it is asked. Here such a request
is told what is wrong with it, by a status of 4xx and words that hold no path of this machine.
"""

import logging
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import requests
from fastapi import HTTPException, Request, Response
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import JSONResponse
from monailabel.app import app
from monailabel.config import settings
from monailabel.interfaces.exception import MONAILabelException
from monailabel.interfaces.utils.app import app_instance

from clnet.apps.label.refusals import RequestError
from clnet.apps.label.routes import router
from clnet.errors import ClnetError

logger = logging.getLogger(__name__)

app.include_router(router)


def refusal(status: int, words: str) -> JSONResponse:
    """An answer that says what is wrong, with files named as in the datastore."""
    words = words.replace(f"{settings.MONAI_LABEL_APP_DIR}/", "")
    return JSONResponse({"detail": app_instance().datastore().without_folder(words)}, status)


@app.exception_handler(ClnetError)
def refuse(request: Request, error: ClnetError) -> Response:
    """What clnet says about its input."""
    return refusal(error.status if isinstance(error, RequestError) else 422, str(error))


@app.exception_handler(MONAILabelException)
def refuse_unknown(request: Request, error: MONAILabelException) -> Response:
    """What MONAI Label does not know: an image, a label, a strategy."""
    return refusal(404, error.msg)


@app.exception_handler(HTTPException)
async def refuse_as_asked(request: Request, error: HTTPException) -> Response:
    """MONAI Label's own refusals, some of which it takes for errors of the server."""
    if error.status_code == 500:
        return refusal(422, str(error.detail))
    return await http_exception_handler(request, error)


@app.exception_handler(requests.RequestException)
def refuse_for_now(request: Request, error: requests.RequestException) -> Response:
    """Another server, of images or of logins, that does not answer as it should."""
    logger.warning("%s: %s", request.url.path, type(error).__name__)
    if error.response is not None and error.response.status_code in (400, 401, 403, 404):
        status = error.response.status_code
        return refusal(status, f"the other server that this needs answers with status {status}")
    return refusal(503, f"the other server that this needs does not answer ({type(error).__name__})")


@app.exception_handler(AssertionError)
@app.exception_handler(AttributeError)
@app.exception_handler(LookupError)
@app.exception_handler(TypeError)
@app.exception_handler(ValueError)
def refuse_nonsense(request: Request, error: Exception) -> Response:
    """Values that MONAI Label has not checked, such as params that are no JSON."""
    if request.url.path.startswith(f"{router.prefix}/"):
        raise error  # our routes check what they are given: this is a fault of ours, and a status of 500
    logger.warning("%s: a request that makes no sense", request.url.path, exc_info=error)
    return refusal(422, f"the request makes no sense ({type(error).__name__}); check its parameters")


@app.middleware("http")
async def look_at_request(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
    """Refuse what no endpoint of MONAI Label would."""
    words = reason_to_refuse(request)
    return await answer(request) if words is None else refusal(*words)


def reason_to_refuse(request: Request) -> tuple[int, str] | None:
    """The status and the words of a refusal, if there is a reason for one."""
    parts = request.url.path.strip("/").split("/")
    instance = app_instance()
    names = {"train": instance._trainers, "scoring": instance._scoring_methods, "batch": instance._infers}
    origin = urlsplit(request.headers.get("origin", ""))
    if ".." in parts:
        return 404, "a path here never goes up"
    if parts[0] in names and request.method == "POST" and parts[-1] not in (*names[parts[0]], parts[0]):
        return 404, f"there is no {parts[0]} {parts[-1]!r}; expected {', '.join(names[parts[0]])}"
    if parts[0] == "model" and request.method != "GET":
        return 403, "the model is changed by training alone"
    # MONAI Label lets the pages of all sites ask, and its setting for this keeps it from starting.
    if origin.netloc not in ("", request.headers.get("host")) and origin.geturl() not in instance.origins:
        return 403, "pages of other sites may not ask here; --conf origins names those that may"
    return None
