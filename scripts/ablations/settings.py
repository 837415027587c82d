"""What is trained: each setting is the bundle's train.yaml with some configs on top.

Names are those of rows in `tables`, of runs in MLflow, and of files in docs/evidence/runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

EPOCHS = {"phantom": 24, "patient": 24, "film": 16}
"""The length of a training by its data: what train.yaml and film.yaml say. Validation is flat by then."""


@dataclass(frozen=True)
class Setting:
    """A variant to train and evaluate.

    Attributes:
        configs: files of bundle/configs on top of train.yaml.
        data: a name that `data.make_data` knows.
        options: of the bundle's commands, by name.
        start: the setting whose weights its training starts from, those of seed 0; "" for none.
        own_epochs: the length of its training, if that is not the usual one of its data.
    """

    configs: tuple[str, ...] = ()
    data: str = "phantom"
    options: Mapping[str, str] = field(default_factory=dict)
    start: str = ""
    own_epochs: int = 0

    @property
    def epochs(self) -> int:
        """The length of its training."""
        return self.own_epochs or EPOCHS[self.data]


VARIANTS: dict[str, tuple[str, ...]] = {
    "geometric": (),
    "one_view": ("one_view",),
    "clnet": ("clnet",),
    **{
        name: ("clnet", name)
        for name in ("deformable_detr", "vild", "linker_only", "pair_verification", "paired_query")
    },
}
"""The configs of each network, on top of train.yaml; those on top of clnet.yaml are the paper's."""

SETTINGS: dict[str, Setting] = {
    **{name: Setting(configs) for name, configs in VARIANTS.items()},
    **{f"{name}_patient": Setting(VARIANTS[name], "patient") for name in ("geometric", "clnet")},
    **{f"{name}_film": Setting(("film", *configs), "film") for name, configs in VARIANTS.items()},
    # The network of the films on the phantom, reduced to what a training of minutes needs; then on films.
    "pretraining": Setting(("film",), options={"size": "[256, 128]"}, own_epochs=6),
    "pretrained_film": Setting(("film",), "film", start="pretraining"),
}
