"""What Prometheus reads at /metrics."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from clnet.serve.ledger import STATES, Ledger

_SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)


class Metrics:
    """Counters of this process, and the queue as it is now."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.images = Counter("clnet_images_received", "Images accepted", registry=self._registry)
        self.refused = Counter(
            "clnet_refused", "Associations and objects refused", ["status"], registry=self._registry
        )
        self.steps = Counter(
            "clnet_steps", "Steps, by how they ended", ["step", "end"], registry=self._registry
        )
        self.seconds = Histogram(
            "clnet_step_seconds", "Duration of a step", ["step"], buckets=_SECONDS, registry=self._registry
        )
        self.latency = Histogram(
            "clnet_result_seconds",
            "From the last image of a study to its results at the last destination",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._studies = Gauge("clnet_studies", "Studies in each state", ["state"], registry=self._registry)
        self._free = Gauge("clnet_disk_free_bytes", "Free on the disk", registry=self._registry)

    def page(self, ledger: Ledger, free: int) -> bytes:
        """The text for Prometheus."""
        counts = ledger.counts()
        for state in STATES:
            self._studies.labels(state).set(counts[state])
        self._free.set(free)
        return generate_latest(self._registry)
