"""The feed-forward network of a transformer layer."""

from torch import Tensor, nn
from torch.nn import functional as F

from clnet.networks.layers import Residual


class FeedForward(nn.Module):
    """Two linear layers on every token, with the residual around them (the paper's FFN in a layer)."""

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.expand = nn.Linear(width, hidden)
        self.dropout = nn.Dropout(dropout)
        self.contract = nn.Linear(hidden, width)
        self.residual = Residual(width, dropout)
        nn.init.xavier_uniform_(self.expand.weight)
        nn.init.xavier_uniform_(self.contract.weight)

    def forward(self, x: Tensor) -> Tensor:
        """[..., D] to [..., D]."""
        return self.residual(x, self.contract(self.dropout(F.relu(self.expand(x)))))
