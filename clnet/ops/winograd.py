"""Winograd's convolution: 3×3 kernels with a quarter of the multiplications (Lavin and Gray, 2016).

The convolution of a tile is a product of polynomials. Their values at six points, multiplied point by point,
give four outputs per row with six multiplications instead of twelve; in two dimensions, 16 outputs with 36
instead of 144. What is left are 36 matrix products, one per point, between tiles and kernels.
"""

import functools

import torch
from torch import Tensor, nn
from torch.nn import functional as F

TILE = 4
"""Outputs per row of a tile."""
POINTS = TILE + 2
"""Inputs per row of a tile, and points at which polynomials are evaluated."""

# F(4, 3) for the points 0, 1, -1, 2, -2 and infinity: outputs @ ((kernel @ k) * (inputs @ x)).
INPUTS = (
    (4, 0, -5, 0, 1, 0),
    (0, -4, -4, 1, 1, 0),
    (0, 4, -4, -1, 1, 0),
    (0, -2, -1, 2, 1, 0),
    (0, 2, -1, -2, 1, 0),
    (0, 4, 0, -5, 0, 1),
)
KERNEL = (
    (1 / 4, 0, 0),
    (-1 / 6, -1 / 6, -1 / 6),
    (-1 / 6, 1 / 6, -1 / 6),
    (1 / 24, 1 / 12, 1 / 6),
    (1 / 24, -1 / 12, 1 / 6),
    (0, 0, 1),
)
OUTPUTS = ((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1))


class WinogradConv2d(nn.Conv2d):
    """A convolution that goes Winograd's way where that is quicker."""

    def forward(self, x: Tensor) -> Tensor:
        """See `torch.nn.Conv2d`."""
        return winograd_convolution(x, self.weight) if takes_winograd(x, self) else super().forward(x)


def use_winograd(network: nn.Module) -> None:
    """Make each 3×3 convolution of a network without a bias a `WinogradConv2d`; names stay as they are."""
    for module in network.modules():
        if type(module) is nn.Conv2d and module.kernel_size == (3, 3) and module.bias is None:
            module.__class__ = WinogradConv2d


def takes_winograd(x: Tensor, convolution: nn.Conv2d) -> bool:
    """Whether it is quicker for this convolution of x [B, C, H, W]: in training on CPU, on maps of some size.

    In inference it gains little, and exact results count for more: Winograd's are some 1e-6 of the largest
    apart, and useless in half precision, so autocast does without. A trace is of a network for inference.
    """
    learns = torch.is_grad_enabled() and convolution.weight.requires_grad
    learns = learns and not torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    fits = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)
    fits = fits and not torch.is_autocast_enabled("cpu")
    plain = convolution.kernel_size == (3, 3) and convolution.stride == convolution.padding == (1, 1)
    tiled = x.shape[-2] % TILE == 0 and x.shape[-1] % TILE == 0
    # To transform the kernels costs the more the more channels there are, however few the tiles.
    return learns and fits and plain and tiled and x[:, 0].numel() >= 2 * x.shape[1]


def winograd_convolution(x: Tensor, kernels: Tensor) -> Tensor:
    """`F.conv2d` with 3×3 kernels, stride 1 and padding 1.

    Args:
        x: [B, C, H, W], H and W multiples of `TILE`; quickest with channels side by side.
        kernels: [O, C, 3, 3].

    Returns:
        [B, O, H, W], channels side by side.
    """
    batch, channels, rows, columns = x.shape
    across, down, out = columns // TILE, rows // TILE, kernels.shape[0]
    inputs, kernel, outputs = _transforms(x.dtype)
    values = (inputs @ _tiles(x)).view(POINTS**2, -1, channels)
    kernel_values = (kernel @ kernels.permute(2, 3, 1, 0).reshape(9, -1)).view(POINTS**2, channels, out)
    products = torch.bmm(values, kernel_values).view(POINTS**2, -1)  # [36, tiles · O]
    tiles = (outputs @ products).view(TILE, TILE, batch, down, across, out)
    return tiles.permute(2, 3, 0, 4, 1, 5).reshape(batch, rows, columns, out).permute(0, 3, 1, 2)


def _tiles(x: Tensor) -> Tensor:
    """Every tile of x [B, C, H, W] with the pixels around it: [36, B · H / 4 · W / 4 · C]."""
    batch, channels, rows, columns = x.shape
    padded = F.pad(x.permute(0, 2, 3, 1).contiguous(), (0, 0, 1, TILE - 1, 1, TILE - 1))
    blocks = padded.view(batch, rows // TILE + 1, TILE, columns // TILE + 1, TILE, channels)
    blocks = blocks.permute(2, 4, 0, 1, 3, 5)  # [4, 4, B, H / 4 + 1, W / 4 + 1, C]
    # A tile is a block of pixels, and the first two rows and columns of the blocks behind it.
    tall = torch.cat([blocks[:, :, :, :-1], blocks[:2, :, :, 1:]], dim=0)
    return torch.cat([tall[:, :, :, :, :-1], tall[:, :2, :, :, 1:]], dim=1).view(POINTS**2, -1)


@functools.cache
def _transforms(dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """The three transforms of both dimensions at once: [36, 36], [36, 9] and [16, 36]."""
    one = [torch.tensor(transform, dtype=torch.float64) for transform in (INPUTS, KERNEL, OUTPUTS)]
    inputs, kernel, outputs = (torch.kron(matrix, matrix).to(dtype) for matrix in one)
    return inputs, kernel, outputs
