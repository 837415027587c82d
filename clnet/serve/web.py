"""The HTTP listener: health, readiness and metrics; STOW-RS and the status page, if they are asked for."""

import base64
import hmac
import re
import ssl
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from clnet.serve.intake import Intake
from clnet.serve.journal import Audit, log
from clnet.serve.ledger import Ledger
from clnet.serve.metrics import Metrics
from clnet.serve.page import pictures_page, status_page
from clnet.serve.settings import Http, ServeError
from clnet.serve.stow import store

Handler = Callable[[Request], Awaitable[Response]]
STUDY, BREAST = r"[0-9a-f]{16}", r"[0-9a-f]{12}"
STARTING_SECONDS = 30


class Web:
    """Serves until it is stopped.

    Args:
        settings: of the listener.
        ledger: the queue.
        intake: takes images.
        metrics: for Prometheus.
        audit: says who looked.
        problems: why the node is not alive, and why it is not ready.
    """

    def __init__(
        self,
        settings: Http,
        ledger: Ledger,
        intake: Intake,
        metrics: Metrics,
        audit: Audit,
        problems: Callable[[], tuple[list[str], list[str]]],
    ) -> None:
        self._settings, self._ledger, self._intake = settings, ledger, intake
        self._metrics, self._audit, self._problems = metrics, audit, problems
        self._token = settings.token
        authority = settings.tls.authority if settings.tls else None
        if settings.tls:
            settings.tls.server_context()  # for its error: uvicorn would end in its thread without a word
        config = uvicorn.Config(
            Starlette(routes=self._routes()),
            host=settings.host,
            port=settings.port,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=5,
            ssl_certfile=settings.tls.certificate if settings.tls else None,
            ssl_keyfile=settings.tls.key if settings.tls else None,
            ssl_ca_certs=str(authority) if authority else None,
            ssl_cert_reqs=ssl.CERT_REQUIRED if authority else ssl.CERT_NONE,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="web")

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()
        until = time.monotonic() + STARTING_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > until:
                place = f"{self._settings.host}:{self._settings.port}"
                raise ServeError(f"http: cannot listen at {place}; is another server there?")
            time.sleep(0.02)

    def stop(self) -> None:
        """End after the requests that are being answered."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            self._server.run()
        except SystemExit:  # how uvicorn says that the address is taken; `start` says so
            return

    def _routes(self) -> list[Route]:
        routes = [
            Route("/health", partial(self._state, 0)),
            Route("/ready", partial(self._state, 1)),
            Route("/metrics", self._show_metrics),
        ]
        if self._settings.stow:
            for path in ("/dicom-web/studies", "/dicom-web/studies/{study}"):
                routes.append(Route(path, self._protected(self._store), methods=["POST"]))
        if self._settings.status_page:
            routes += [
                Route("/status", self._protected(self._status)),
                Route("/status/{study}", self._protected(self._pictures)),
                Route("/status/{study}/{breast}.png", self._protected(self._picture)),
                Route("/status/{study}/retry", self._protected(self._retry), methods=["POST"]),
            ]
        return routes

    async def _state(self, kind: int, _: Request) -> Response:
        problems = (await run_in_threadpool(self._problems))[kind]
        return JSONResponse({"ok": not problems, "problems": problems}, 503 if problems else 200)

    async def _show_metrics(self, _: Request) -> Response:
        page = await run_in_threadpool(self._metrics.page, self._ledger, self._intake.spool.free())
        return Response(page, media_type="text/plain; version=0.0.4")

    async def _store(self, request: Request) -> Response:
        if not self._token and "origin" in request.headers:  # from whatever page a browser shows
            return Response("a web page needs a token to store images\n", 403)
        if (await run_in_threadpool(self._problems))[1]:
            return Response("not ready\n", 503)
        return await store(request, self._intake)

    async def _status(self, request: Request) -> Response:
        self._looked(request, "")
        return HTMLResponse(await run_in_threadpool(status_page, self._ledger, self._intake.spool))

    async def _pictures(self, request: Request) -> Response:
        study_id = request.path_params["study"]
        study = self._ledger.study(study_id) if re.fullmatch(STUDY, study_id) else None
        if study is None:
            return Response("no such study\n", 404)
        self._looked(request, study_id)
        folder = self._intake.spool.results_of(study_id, study.images) / "breasts"
        breasts = sorted(file.parent.name for file in folder.glob("*/picture.png"))
        return HTMLResponse(pictures_page(study_id, breasts))

    async def _picture(self, request: Request) -> Response:
        study_id, breast = request.path_params["study"], request.path_params["breast"]
        study = self._ledger.study(study_id) if re.fullmatch(STUDY, study_id) else None
        if study is not None and re.fullmatch(BREAST, breast):
            results = self._intake.spool.results_of(study_id, study.images)
            file = results / "breasts" / breast / "picture.png"
            if file.is_file():
                return FileResponse(file, headers={"Cache-Control": "no-store"})
        return Response("no such picture\n", 404)

    async def _retry(self, request: Request) -> Response:
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
            return Response("a request of another site\n", 403)
        study_id = request.path_params["study"]
        if not re.fullmatch(STUDY, study_id):  # it would be in the log
            return Response("no such study\n", 404)
        self._audit.write("retry", study=study_id, address=request.client.host if request.client else "")
        log("retry", study=study_id, studies=self._ledger.retry(study_id))
        return RedirectResponse("/status", 303)

    def _looked(self, request: Request, study_id: str) -> None:
        self._audit.write("looked", study=study_id, address=request.client.host if request.client else "")

    def _protected(self, handler: Handler) -> Handler:
        async def checked(request: Request) -> Response:
            if self._token and not hmac.compare_digest(_given_token(request), self._token.encode()):
                return Response("a token is needed\n", 401, {"WWW-Authenticate": 'Basic realm="clnet"'})
            return await handler(request)

        return checked


def _given_token(request: Request) -> bytes:
    """The token of a request: as a bearer, or as the password of any user, which browsers ask for."""
    kind, _, value = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return value.encode()
    try:
        return base64.b64decode(value, validate=True).partition(b":")[2] if kind.lower() == "basic" else b""
    except ValueError:  # not Base64, or not even ASCII
        return b""
