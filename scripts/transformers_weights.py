"""Hugging Face transformers as an oracle: its networks, and their weights under our names."""

import copy
from typing import Any

import torch
from transformers import DeformableDetrConfig, DeformableDetrForObjectDetection, ResNetBackbone, ResNetConfig


def randomise(module: torch.nn.Module) -> None:
    """Make every weight matter: many begin at zero, where a wrong formula could hide."""
    with torch.no_grad():
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if "embed" in name and name.endswith(("embed", "embeddings.weight")):
                tensor.normal_()
            elif tensor.dim() > 1:
                tensor.normal_(std=(2 / tensor[0].numel()) ** 0.5)
            elif name.endswith("running_var"):
                tensor.uniform_(0.5, 1.5)
            elif tensor.is_floating_point():
                tensor.add_(torch.randn_like(tensor) * 0.1)


def resnet(depths: list[int], bottleneck: bool, channels: int) -> ResNetBackbone:
    """A ResNet with the maps of its last three stages as outputs."""
    expansion = 4 if bottleneck else 1
    config = ResNetConfig(
        num_channels=channels,
        depths=depths,
        hidden_sizes=[width * expansion for width in (64, 128, 256, 512)],
        layer_type="bottleneck" if bottleneck else "basic",
        out_features=["stage2", "stage3", "stage4"],
    )
    return ResNetBackbone(config).eval()


def torchvision_names(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The state dict of a transformers ResNet in torchvision's names."""
    renamed = {}
    for name, tensor in state.items():
        words = name.split(".")
        *_, kind, leaf = words
        if words[0] == "embedder":
            module = "conv1" if kind == "convolution" else "bn1"
        else:
            stage, block = int(words[2]) + 1, words[4]
            if "shortcut" in words:
                part = f"downsample.{0 if kind == 'convolution' else 1}"
            else:
                part = f"{'conv' if kind == 'convolution' else 'bn'}{int(words[6]) + 1}"
            module = f"layer{stage}.{block}.{part}"
        renamed[f"{module}.{leaf}"] = tensor
    return renamed


SMALL = {
    "num_queries": 7,
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_ffn_dim": 96,
    "decoder_ffn_dim": 96,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_n_points": 3,
    "decoder_n_points": 3,
    "attn_implementation": "eager",
}


def deformable_detr(
    feature_levels: int, box_refinement: bool, resnet50: bool = False, sizes: dict[str, Any] = SMALL
) -> DeformableDetrForObjectDetection:
    """A Deformable DETR for grey images, by default a small one with a ResNet-18, and random weights."""
    depths = [3, 4, 6, 3] if resnet50 else [2, 2, 2, 2]
    backbone = resnet(depths, bottleneck=resnet50, channels=1).config
    config = DeformableDetrConfig(
        backbone_config=backbone,
        num_channels=1,
        num_feature_levels=feature_levels,
        with_box_refine=box_refinement,
        num_labels=1,
        **sizes,
    )
    model = DeformableDetrForObjectDetection(config).eval()
    if box_refinement:
        # Heads of their own in every layer, as in the original; transformers ties them.
        model.class_embed = torch.nn.ModuleList(copy.deepcopy(head) for head in model.class_embed)
        model.bbox_embed = torch.nn.ModuleList(copy.deepcopy(head) for head in model.bbox_embed)
        model.model.decoder.bbox_embed = model.bbox_embed
    randomise(model)
    return model


def our_names(model: DeformableDetrForObjectDetection) -> dict[str, torch.Tensor]:
    """The state dict of a transformers Deformable DETR in the names of `clnet.networks.CLNet`."""
    state = model.state_dict()
    ours: dict[str, torch.Tensor] = {}

    def linear(ours_name: str, theirs: str) -> None:
        for leaf in ("weight", "bias"):
            ours[f"{ours_name}.{leaf}"] = state[f"{theirs}.{leaf}"]

    def deformable(ours_name: str, theirs: str) -> None:
        linear(f"{ours_name}.sampling_offsets", f"{theirs}.sampling_offsets")
        linear(f"{ours_name}.attention_weights", f"{theirs}.attention_weights")
        linear(f"{ours_name}.value_projection", f"{theirs}.value_proj")
        linear(f"{ours_name}.output_projection", f"{theirs}.output_proj")

    def feed_forward(ours_name: str, theirs: str) -> None:
        linear(f"{ours_name}.expand", f"{theirs}.mlp.fc1")
        linear(f"{ours_name}.contract", f"{theirs}.mlp.fc2")
        linear(f"{ours_name}.residual.norm", f"{theirs}.final_layer_norm")

    prefix = "model.backbone.model."
    backbone = {name.removeprefix(prefix): t for name, t in state.items() if name.startswith(prefix)}
    ours |= {f"encoder.backbone.{name}": tensor for name, tensor in torchvision_names(backbone).items()}
    ours["encoder.transformer.level_embedding"] = state["model.level_embed"]
    for level in range(len(model.model.input_proj)):
        for place in (0, 1):
            linear(f"encoder.levels.projections.{level}.{place}", f"model.input_proj.{level}.{place}")
    for index in range(len(model.model.encoder.layers)):
        here, there = f"encoder.transformer.layers.{index}", f"model.encoder.layers.{index}"
        deformable(f"{here}.attention", f"{there}.self_attn")
        linear(f"{here}.attention_residual.norm", f"{there}.self_attn_layer_norm")
        feed_forward(f"{here}.ffn", there)

    queries = state["model.query_position_embeddings.weight"]
    ours["detector.object_queries"] = torch.stack([queries, queries])
    linear("detector.reference_points", "model.reference_points")
    for index in range(len(model.model.decoder.layers)):
        here, there = f"detector.layers.{index}", f"model.decoder.layers.{index}"
        for part in ("query", "key", "value", "output"):
            linear(f"{here}.self_attention.attention.{part}", f"{there}.self_attn.{part[0]}_proj")
        linear(f"{here}.self_attention.residual.norm", f"{there}.self_attn_layer_norm")
        deformable(f"{here}.cross_attention", f"{there}.encoder_attn")
        linear(f"{here}.cross_residual.norm", f"{there}.encoder_attn_layer_norm")
        feed_forward(f"{here}.ffn", there)
    for index in range(len(model.class_embed) if model.config.with_box_refine else 1):
        linear(f"detector.heads.{index}.classify", f"class_embed.{index}")
        for layer, name in enumerate(("first", "second", "last")):
            linear(f"detector.heads.{index}.regress.{name}", f"bbox_embed.{index}.layers.{layer}")
    return ours
