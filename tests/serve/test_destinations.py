"""Where results go: dcmtk's storescp by TLS. Plain, and other destinations: test_serve.py."""

import subprocess
import time

import pytest
from serve_images import copy_of, studies
from servers import free_port, wait_for
from serving import make_certificate, needs, write_study

from clnet.serve.destinations import SendError, send
from clnet.serve.settings import Destination


@needs("storescp", "openssl")
def test_results_go_by_tls_to_a_destination_whose_authority_is_known(tmp_path):
    authority = make_certificate(tmp_path, "authority")
    key, certificate = make_certificate(tmp_path, "archive", authority)
    own_key, own_certificate = make_certificate(tmp_path, "node", authority)
    archive, port = tmp_path / "archive", free_port()
    archive.mkdir()
    files = sorted(write_study(tmp_path / "study", copy_of(studies()[0], 80)).iterdir())
    server = subprocess.Popen(
        ["storescp", "+tls", key, certificate, "+cf", authority[1], "-rc", "-od", archive, str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def destination(**tls):
        peer = {"host": "127.0.0.1", "port": port, "ae_title": "STORESCP", "tls": tls}
        return Destination(name="archive", dicom=peer)

    try:
        trusted = destination(certificate=own_certificate, key=own_key, authority=authority[1])

        def has_arrived():
            try:
                send(files, trusted, "study", "CLNET")
            except SendError:  # it does not listen yet
                time.sleep(0.2)
                return False
            return True

        wait_for(has_arrived, lambda: server.poll() is not None)
        assert len(list(archive.iterdir())) == 4
        for wrong in (destination(), destination(authority=authority[1])):  # the latter has no certificate
            with pytest.raises(SendError, match="STORESCP"):
                send(files, wrong, "study", "CLNET")
    finally:
        server.terminate()
        server.wait()
