"""STOW-RS: images that come by HTTP (PS3.18, 10.5)."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from pydicom.dataset import Dataset
from pydicom.sequence import Sequence
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from clnet.serve.intake import Intake
from clnet.serve.spool import OUT_OF_RESOURCES, Accepted, RefusedError


async def store(request: Request, intake: Intake) -> Response:
    """Take the objects of a request, one at a time as they arrive."""
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/related" or b"boundary" not in options:
        return Response("multipart/related; type=application/dicom with a boundary is expected\n", 415)
    taken, failed = Sequence(), Sequence()
    address = request.client.host if request.client else ""
    study = request.path_params.get("study")
    try:
        async for data in _parts(request, options[b"boundary"], intake.spool.most_bytes):
            take = partial(intake.take, data, "STOW-RS", address)
            try:
                accepted = await run_in_threadpool(take)
            except RefusedError as refusal:
                failed.append(_failure(refusal.status))
                continue
            except Exception as error:
                intake.refused("image", OUT_OF_RESOURCES, type(error).__name__, "STOW-RS", address)
                failed.append(_failure(OUT_OF_RESOURCES))
                continue
            taken.append(_reference(accepted, study))
    except FormParserError:
        return Response("the body is not multipart/related\n", 400)
    answer = Dataset()
    if taken:
        answer.ReferencedSOPSequence = taken
    if failed:
        answer.FailedSOPSequence = failed
    status = 200 if taken and not failed else 202 if taken else 409
    return JSONResponse(answer.to_json_dict(), status, media_type="application/dicom+json")


async def _parts(request: Request, boundary: bytes, most: float) -> AsyncIterator[bytes]:
    """The content of each part; one that is too large is cut off just after the limit, to be refused."""
    part, parts, ends = bytearray(), list[bytes](), list[bool]()

    def add(data: bytes, start: int, end: int) -> None:
        if len(part) <= most:
            part.extend(data[start:end])

    def finish() -> None:
        parts.append(bytes(part))
        part.clear()

    callbacks: Any = {"on_part_data": add, "on_part_end": finish, "on_end": lambda: ends.append(True)}
    parser = MultipartParser(boundary, callbacks)
    async for chunk in request.stream():
        parser.write(chunk)
        while parts:
            yield parts.pop(0)
    if not ends:  # or a last part that is cut off would be missing from the answer
        raise FormParserError("there is no boundary at the end")


def _reference(accepted: Accepted, study: str | None) -> Dataset:
    item = Dataset()
    item.ReferencedSOPClassUID = accepted.identity["SOPClassUID"]
    item.ReferencedSOPInstanceUID = accepted.identity["SOPInstanceUID"]
    if study is not None and study != accepted.identity["StudyInstanceUID"]:
        item.WarningReason = 0xB007  # data set does not match the SOP class; here: the study of the address
    return item


def _failure(status: int) -> Dataset:
    item = Dataset()
    item.FailureReason = status
    return item
