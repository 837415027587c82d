"""Images of DICOMweb servers, taken as they are sent: who reads one then guards against what it may hold."""

from dicomweb_client import DICOMwebClient

ACCEPTED = 'multipart/related; type="application/dicom"; transfer-syntax=*'


def fetch_instance(client: DICOMwebClient, study: str, series: str, image: str) -> bytes:
    """The file of an image.

    The client's own `retrieve_instance` reads it at once, and a small file may inflate to more than memory
    holds.

    Args:
        client: of the server.
        study: its UID.
        series: its UID.
        image: its SOPInstanceUID.
    """
    prefix = f"/{client.wado_url_prefix}" if client.wado_url_prefix else ""
    address = f"{client.base_url}{prefix}/studies/{study}/series/{series}/instances/{image}"
    answer = client._http_get(address, headers={"Accept": ACCEPTED})
    if answer.headers.get("Content-Type", "").startswith("application/dicom"):  # some servers send it bare
        return answer.content
    return next(client._decode_multipart_message(answer, stream=False), b"")
