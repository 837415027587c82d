"""What is trained: each setting is a few overrides of the bundle's train.yaml.

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
        data: a name in `data.SUBSETS`, or "phantom".
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


SETTINGS: dict[str, Setting] = {
    "clnet": Setting(),
    "deformable_detr": Setting(("deformable_detr",)),
    "vild": Setting(("vild",)),
    "linker_only": Setting(("linker_only",)),
    "pair_verification": Setting(("pair_verification",)),
    "paired_query": Setting(("paired_query",)),
    "paired_query_unrefined": _network("paired_query", detector__box_refinement="False"),
    "add_0.25": _network(matcher__loss__cost_method="add", matcher__loss__cost_alpha="0.25"),
    "add_0.5": _network(matcher__loss__cost_method="add", matcher__loss__cost_alpha="0.5"),
    "add_0.75": _network(matcher__loss__cost_method="add", matcher__loss__cost_alpha="0.75"),
    "mul_0.25": _network(matcher__loss__cost_alpha="0.25"),
    "mul_0.75": _network(matcher__loss__cost_alpha="0.75"),
    "linker_layers_2": _network(matcher__layers="2"),
    "linker_layers_3": _network(matcher__layers="3"),
    "linker_layers_4": _network(matcher__layers="4"),
    "linker_layers_5": _network(matcher__layers="5"),
    "temperature_1": _network(matcher__loss__temperature="1.0"),
    "no_auxiliary_3": _network(matcher__layers="3", matcher__loss__auxiliary="False"),
    "encoder_1": _network(encoder__layers="1"),
    "encoder_2": _network(encoder__layers="2"),
    "cc_alone": Setting(("deformable_detr",), data="cc"),
    "mlo_alone": Setting(("deformable_detr",), data="mlo"),
    "similarity_weight_0.5": _network(matcher__loss__similarity_weight="0.5"),
    "similarity_weight_1": _network(matcher__loss__similarity_weight="1.0"),
    "linker_factor_1": Setting(overrides={"matcher_factor": "1.0"}),
    "queries_40": _network(detector__object_queries="40"),
    "vild_queries_40": _network("vild", detector__object_queries="40"),
    "box_positions": Setting(removed=True),
    "vild_box_positions": Setting(removed=True),
    "half_data": Setting(data="half"),
    "vild_half_data": Setting(("vild",), data="half"),
    "pair_score_0.25": Setting(removed=True, trained=False),
    "pair_score_0.5": Setting(removed=True, trained=False),
}
