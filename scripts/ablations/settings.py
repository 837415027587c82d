"""What is trained: each setting is the bundle's train.yaml with some configs on top.

Names are those of rows in `tables`, of runs in MLflow, and of files in docs/evidence/runs.
"""

from dataclasses import dataclass

EPOCHS = {"phantom": 24, "patient": 24, "film": 16}
"""The length of a training by its data: what train.yaml and film.yaml say. Validation is flat by then."""


@dataclass(frozen=True)
class Setting:
    """A variant to train and evaluate.

    Attributes:
        configs: files of bundle/configs on top of train.yaml.
        data: a name that `data.make_data` knows.
    """

    configs: tuple[str, ...] = ()
    data: str = "phantom"

    @property
    def epochs(self) -> int:
        """The length of its training."""
        return EPOCHS[self.data]


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
}
