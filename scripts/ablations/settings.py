"""What is trained: each setting is a few words on top of the bundle's train.yaml.

Names are those of rows in `tables`, of runs in MLflow, and of files in docs/evidence/runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

LINK = "loss#loss#link#"


@dataclass(frozen=True)
class Setting:
    """A way to train and evaluate.

    Attributes:
        configs: files of bundle/configs that go on top of train.yaml.
        overrides: of values in these.
        data: a name in `data.MAKERS`.
        trained_as: another setting whose weights are taken; None for own ones.
        evaluating: overrides in the evaluation alone.
    """

    configs: tuple[str, ...] = ()
    overrides: Mapping[str, str] = field(default_factory=dict)
    data: str = "phantom"
    trained_as: str | None = None
    evaluating: Mapping[str, str] = field(default_factory=dict)


def _links(**values: str) -> Setting:
    return Setting(overrides={LINK + name: value for name, value in values.items()})


def _network(config: str = "", **values: str) -> Setting:
    configs = (config,) if config else ()
    return Setting(configs, {f"network_def#{name}": value for name, value in values.items()})


SETTINGS: dict[str, Setting] = {
    "clnet": Setting(),
    "deformable_detr": Setting(("deformable_detr",)),
    "vild": Setting(("vild",)),
    "linker_only": Setting(("linker_only",)),
    "pair_verification": Setting(("pair_verification",)),
    "paired_query": Setting(("paired_query",)),
    "paired_query_unrefined": _network("paired_query", box_refinement="False"),
    "add_0.25": _links(cost_method="add", cost_alpha="0.25"),
    "add_0.5": _links(cost_method="add", cost_alpha="0.5"),
    "add_0.75": _links(cost_method="add", cost_alpha="0.75"),
    "mul_0.25": _links(cost_alpha="0.25"),
    "mul_0.75": _links(cost_alpha="0.75"),
    "linker_layers_2": _network(linker_layers="2"),
    "linker_layers_3": _network(linker_layers="3"),
    "linker_layers_4": _network(linker_layers="4"),
    "linker_layers_5": _network(linker_layers="5"),
    "temperature_1": _links(temperature="1.0"),
    "no_auxiliary_3": Setting(overrides={"network_def#linker_layers": "3", LINK + "auxiliary": "False"}),
    "encoder_1": _network(encoder_layers="1"),
    "encoder_2": _network(encoder_layers="2"),
    "cc_alone": Setting(("deformable_detr",), data="cc"),
    "mlo_alone": Setting(("deformable_detr",), data="mlo"),
    "similarity_weight_0.5": _links(similarity_weight="0.5"),
    "similarity_weight_1": _links(similarity_weight="1.0"),
    "linker_factor_1": Setting(overrides={"linker_factor": "1.0"}),
    "queries_40": _network(object_queries="40"),
    "vild_queries_40": _network("vild", object_queries="40"),
    "box_positions": _network(box_positions="True"),
    "vild_box_positions": _network("vild", box_positions="True"),
    "half_data": Setting(data="half"),
    "vild_half_data": Setting(("vild",), data="half"),
    "pair_score_0.25": Setting(
        trained_as="clnet", evaluating={"validate#postprocessing#pair_score_weight": "0.25"}
    ),
    "pair_score_0.5": Setting(
        trained_as="clnet", evaluating={"validate#postprocessing#pair_score_weight": "0.5"}
    ),
}
