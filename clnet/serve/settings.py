"""The settings of a node, as `serve.yaml` has them; each has a default that is safe."""

import ipaddress
import ssl
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from clnet.errors import ClnetError

Port = Annotated[int, Field(ge=1, le=65535)]
AeTitle = Annotated[str, Field(min_length=1, max_length=16, pattern=r"^[!-\[\]-~]([ -\[\]-~]*[!-\[\]-~])?$")]
Seconds = Annotated[float, Field(gt=0)]
WebAddress = Annotated[str, Field(pattern=r"^https?://")]


class ServeError(ClnetError):
    """Invalid settings of a node, or a node that cannot start."""


def read_token(file: Path | None) -> str:
    """The content of a file with a token or a password; "" without one."""
    if file is None:
        return ""
    try:
        token = file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ServeError(f"{file}: cannot be read ({error.strerror})") from error
    if not token:
        raise ServeError(f"{file}: is empty; a token is expected")
    return token


def is_loopback(host: str) -> bool:
    """Whether a host is reached from this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tls(_Settings):
    """Files in PEM format.

    Attributes:
        certificate, key: of this node.
        authority: certificates that the other side's must be signed by. A server that has one asks for the
            client's certificate.
    """

    certificate: Path | None = None
    key: Path | None = None
    authority: Path | None = None

    def server_context(self) -> ssl.SSLContext:
        """For connections that others open."""
        context = self._context(ssl.Purpose.CLIENT_AUTH)
        if self.authority:
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def client_context(self) -> ssl.SSLContext:
        """For connections that this node opens."""
        return self._context(ssl.Purpose.SERVER_AUTH)

    def _context(self, purpose: ssl.Purpose) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(purpose, cafile=self.authority)
            if self.certificate:
                context.load_cert_chain(self.certificate, self.key)
        except OSError as error:  # which names no file
            files = ", ".join(str(file) for file in (self.certificate, self.key, self.authority) if file)
            raise ServeError(f"tls: one of {files} cannot be used ({error.strerror})") from error
        return context


class Sender(_Settings):
    """Who may send by DICOM.

    Attributes:
        ae_title: how it calls itself.
        address: its IP address; any if not given.
        priority: its studies go before those of a lower one.
    """

    ae_title: AeTitle
    address: str | None = None
    priority: int = 0

    @field_validator("address")
    @classmethod
    def _is_numeric(cls, address: str | None) -> str | None:
        return None if address is None else str(ipaddress.ip_address(address))


class Dicom(_Settings):
    """The DICOM listener.

    Attributes:
        host, port, ae_title: where it listens, and under which name.
        senders: who may send; by default everybody who reaches a loopback address.
        most_associations: at a time.
        tls: encrypt.
    """

    host: str = "127.0.0.1"
    port: Port = 11112
    ae_title: AeTitle = "CLNET"
    senders: tuple[Sender, ...] = ()
    most_associations: Annotated[int, Field(ge=1)] = 10
    tls: Tls | None = None

    @model_validator(mode="after")
    def _knows_its_senders(self) -> "Dicom":
        if not self.senders and not is_loopback(self.host):
            raise ValueError(
                f"host is {self.host}, which others can reach: list those who may send in senders"
            )
        if self.tls and not self.tls.certificate:
            raise ValueError("tls needs a certificate")
        return self


class Http(_Settings):
    """The HTTP listener: /health, /ready and /metrics, and what is asked for.

    Attributes:
        host, port: where it listens.
        token_file: a file with the token that STOW-RS and the status page ask for.
        stow: take studies by STOW-RS at /dicom-web/studies.
        status_page: show the queue at /status.
        tls: encrypt.
    """

    host: str = "127.0.0.1"
    port: Port = 8112
    token_file: Path | None = None
    stow: bool = False
    status_page: bool = False
    tls: Tls | None = None

    @model_validator(mode="after")
    def _is_protected(self) -> "Http":
        if self.status_page and not self.token_file:
            raise ValueError("status_page needs a token_file")
        if self.stow and not self.token_file and not is_loopback(self.host):
            raise ValueError(f"host is {self.host}, which others can reach: stow needs a token_file")
        if self.tls and not self.tls.certificate:
            raise ValueError("tls needs a certificate")
        return self

    @property
    def token(self) -> str:
        """What the file says; "" without one."""
        return read_token(self.token_file)


class Poll(_Settings):
    """An archive that is asked for new studies.

    Attributes:
        name: in logs and rules, instead of an AE title.
        orthanc: the address of an Orthanc, whose /changes are followed; or
        qido: the address of a DICOMweb server, which is asked for mammograms of the last days.
        days: how many, today included.
        every_seconds: how often.
        user, password_file, token_file: how to log in.
        authority: certificates that the archive's must be signed by.
        priority: as of a sender.
    """

    name: str
    orthanc: WebAddress | None = None
    qido: WebAddress | None = None
    days: Annotated[int, Field(ge=1)] = 2
    every_seconds: Seconds = 10
    user: str | None = None
    password_file: Path | None = None
    token_file: Path | None = None
    authority: Path | None = None
    priority: int = 0

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> "Poll":
        if (self.orthanc is None) == (self.qido is None):
            raise ValueError("give orthanc or qido, one of them")
        return self


class Rule(_Settings):
    """Which results a destination gets; what is not given does not matter.

    Attributes:
        modalities: such as MG.
        senders: AE titles, or names of polled archives.
        findings: True for studies with lesions alone, False for those without.
    """

    modalities: tuple[str, ...] | None = None
    senders: tuple[str, ...] | None = None
    findings: bool | None = None

    def holds(self, modality: str, sender: str, lesions: int) -> bool:
        """Whether the results of a study are meant."""
        return (
            (self.modalities is None or modality in self.modalities)
            and (self.senders is None or sender in self.senders)
            and (self.findings is None or self.findings == bool(lesions))
        )


class DicomPeer(_Settings):
    """A DICOM storage provider."""

    host: str
    port: Port
    ae_title: AeTitle
    tls: Tls | None = None


class Destination(_Settings):
    """Where results go: one of dicom, stow, folder.

    Attributes:
        name: in logs, metrics and the audit log.
        dicom: send by C-STORE.
        stow: the address of a DICOMweb server, such as http://127.0.0.1:8042/dicom-web; send by STOW-RS.
        folder: copy into a folder of the study there.
        user, password_file, token_file: how to log in, for stow.
        authority: certificates that the server's must be signed by, for stow.
        when: a rule.
    """

    name: Annotated[str, Field(pattern=r"^[\w-]+$")]
    dicom: DicomPeer | None = None
    stow: WebAddress | None = None
    folder: Path | None = None
    user: str | None = None
    password_file: Path | None = None
    token_file: Path | None = None
    authority: Path | None = None
    when: Rule = Rule()

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> "Destination":
        if sum(value is not None for value in (self.dicom, self.stow, self.folder)) != 1:
            raise ValueError("give dicom, stow or folder, one of them")
        return self


class Retries(_Settings):
    """How often a step is tried, and how long after the last time.

    Attributes:
        first_seconds: after the first failure; each further one doubles it,
        most_seconds: up to this.
        analysis: attempts to analyse a study, killed ones included.
        sending: attempts to send its results to a destination; by default for about three days.
    """

    first_seconds: Seconds = 10
    most_seconds: Seconds = 900
    analysis: Annotated[int, Field(ge=1)] = 5
    sending: Annotated[int, Field(ge=1)] = 300

    def wait(self, attempts: int) -> float:
        """Seconds to wait after so many attempts."""
        return float(min(self.most_seconds, self.first_seconds * 2 ** min(max(attempts - 1, 0), 30)))


class Limits(_Settings):
    """What is refused.

    Attributes:
        object_mb: a larger object.
        free_gb: anything, when less is free on the disk.
    """

    object_mb: Annotated[float, Field(gt=0)] = 512
    free_gb: Annotated[float, Field(ge=0)] = 1


class Retention(_Settings):
    """When finished studies are removed, images and results.

    Attributes:
        days: after so many.
        free_gb: those that are done, the oldest first, while less is free on the disk.
    """

    days: Annotated[float, Field(gt=0)] = 30
    free_gb: Annotated[float, Field(ge=0)] = 5


class ServeSettings(_Settings):
    """All settings of a node.

    Attributes:
        folder: for the queue, images, results and the audit log.
        queue: the address of a PostgreSQL database that several nodes share; by default SQLite in the folder.
        model, device, min_score, secondary_capture, reports: as of `clnet predict`.
        quiet_seconds: after the last image, until a study counts as complete.
        dicom, http, poll, destinations, retries, limits, retention: see there.
    """

    folder: Path = Path("serve")
    queue: str | None = None
    model: str | None = None
    device: str | None = None
    min_score: float | None = None
    secondary_capture: bool = False
    reports: tuple[str, ...] | None = None
    quiet_seconds: Seconds = 60
    dicom: Dicom = Dicom()
    http: Http = Http()
    poll: tuple[Poll, ...] = ()
    destinations: tuple[Destination, ...] = ()
    retries: Retries = Retries()
    limits: Limits = Limits()
    retention: Retention = Retention()

    @model_validator(mode="after")
    def _fits_together(self) -> "ServeSettings":
        names = [destination.name for destination in self.destinations]
        if len(names) != len(set(names)):
            raise ValueError("two destinations have one name")
        if self.queue and not self.queue.startswith("postgresql://"):  # it may hold a password
            raise ValueError("queue is no address of a PostgreSQL database: it begins with postgresql://")
        for poll in self.poll:
            if poll.qido and poll.days >= self.retention.days:
                raise ValueError(
                    f"{poll.name} asks for {poll.days} days, but retention.days is {self.retention.days:g}: "
                    "studies would be fetched again after they were removed"
                )
        return self

    @property
    def database(self) -> str:
        """The address of the queue."""
        return self.queue or f"sqlite:///{self.folder / 'queue.sqlite'}"


def read_settings(file: Path | None) -> ServeSettings:
    """Read a settings file; paths in it are relative to where the node is started.

    Args:
        file: the file; None for the defaults.
    """
    if file is None:
        return ServeSettings()
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise ServeError(f"{file}: cannot be read ({error.strerror})") from error
    except yaml.YAMLError as error:
        raise ServeError(f"{file}: not YAML ({' '.join(str(error).split())})") from error
    try:
        return ServeSettings.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        if first["type"] == "extra_forbidden":  # its value may be a password
            raise ServeError(f"{file}: {place}: there is no such setting, see docs/serve.md") from error
        message = first["msg"].removeprefix("Value error, ")
        given = "" if isinstance(first["input"], (dict, _Settings)) else f" is {first['input']!r}"
        raise ServeError(f"{file}: {place}{given}: {message}") from error
