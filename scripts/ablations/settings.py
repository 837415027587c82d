"""What is trained: each setting is the bundle's train.yaml with some configs and overrides on top.

Names are those of rows in `tables`, of runs in MLflow, and of files in docs/evidence/runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Setting:
    """A variant to train and evaluate.

    Attributes:
        configs: files of bundle/configs on top of train.yaml.
        overrides: values that replace those of the configs.
        data: a name that `data.make_data` knows.
        removed: the code no longer has it; its kept runs stay in the tables.
        trained: whether its runs were trained, not only evaluated with the weights of others.
    """

    configs: tuple[str, ...] = ()
    overrides: Mapping[str, str] = field(default_factory=dict)
    data: str = "phantom"
    removed: bool = False
    trained: bool = True


def _network(*configs: str, **values: str) -> Setting:
    """The configs with other values in the network: ``matcher__layers`` is ``network_def#matcher#layers``."""
    return Setting(
        configs, {f"network_def#{name.replace('__', '#')}": value for name, value in values.items()}
    )


PAPER = {
    name: ("clnet", *([name] if name != "clnet" else []))
    for name in ("clnet", "deformable_detr", "vild", "linker_only", "pair_verification", "paired_query")
}
"""The configs of the paper's network and its variants."""

SETTINGS: dict[str, Setting] = {
    "geometric": Setting(),
    "one_view": Setting(("one_view",)),
    **{name: Setting(configs) for name, configs in PAPER.items()},
    "geometric_patient": Setting(data="patient"),
    "clnet_patient": Setting(("clnet",), data="patient"),
    "geometric_film": Setting(("film",), data="film"),
    "one_view_film": Setting(("film", "one_view"), data="film"),
    **{f"{name}_film": Setting(("film", *configs), data="film") for name, configs in PAPER.items()},
    "paired_query_unrefined": _network("clnet", "paired_query", detector__box_refinement="False"),
    "add_0.25": _network("clnet", matcher__loss__cost_method="add", matcher__loss__cost_alpha="0.25"),
    "add_0.5": _network("clnet", matcher__loss__cost_method="add", matcher__loss__cost_alpha="0.5"),
    "add_0.75": _network("clnet", matcher__loss__cost_method="add", matcher__loss__cost_alpha="0.75"),
    "mul_0.25": _network("clnet", matcher__loss__cost_alpha="0.25"),
    "mul_0.75": _network("clnet", matcher__loss__cost_alpha="0.75"),
    "linker_layers_2": _network("clnet", matcher__layers="2"),
    "linker_layers_3": _network("clnet", matcher__layers="3"),
    "linker_layers_4": _network("clnet", matcher__layers="4"),
    "linker_layers_5": _network("clnet", matcher__layers="5"),
    "temperature_1": _network("clnet", matcher__loss__temperature="1.0"),
    "no_auxiliary_3": _network("clnet", matcher__layers="3", matcher__loss__auxiliary="False"),
    "encoder_1": _network("clnet", encoder__layers="1"),
    "encoder_2": _network("clnet", encoder__layers="2"),
    "cc_alone": Setting(("clnet", "deformable_detr"), data="cc"),
    "mlo_alone": Setting(("clnet", "deformable_detr"), data="mlo"),
    "similarity_weight_0.5": _network("clnet", matcher__loss__similarity_weight="0.5"),
    "similarity_weight_1": _network("clnet", matcher__loss__similarity_weight="1.0"),
    "linker_factor_1": Setting(("clnet",), {"matcher_factor": "1.0"}),
    "queries_40": _network("clnet", detector__object_queries="40"),
    "vild_queries_40": _network("clnet", "vild", detector__object_queries="40"),
    "box_positions": Setting(removed=True),
    "vild_box_positions": Setting(removed=True),
    "half_data": Setting(("clnet",), data="half"),
    "vild_half_data": Setting(("clnet", "vild"), data="half"),
    "pair_score_0.25": Setting(removed=True, trained=False),
    "pair_score_0.5": Setting(removed=True, trained=False),
}
