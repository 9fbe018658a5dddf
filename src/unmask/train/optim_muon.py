"""Two optimisers as one: torch's Muon for the matrices inside the blocks, AdamW for everything else.

What arrives: the two, over different parameters. What leaves: one `Optimizer` with the groups and the state of both.
What never happens here: the orthogonalisation itself. torch has it.
"""

from __future__ import annotations

from typing import Any

from torch.optim import Optimizer


class Together(Optimizer):
    """One optimiser that steps two. Groups and state are the same objects inside and outside."""

    def __init__(self, one: Optimizer, other: Optimizer) -> None:
        super().__init__([*one.param_groups, *other.param_groups], {})
        self.parts = (one, other)
        for part in self.parts:
            self.state.update(part.state)
        self._share()

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move the parameters of both."""
        for part in self.parts:
            part.step()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over saved groups and state; torch makes new objects of them, so they are shared again."""
        super().load_state_dict(state_dict)
        self._share()

    def _share(self) -> None:
        one, other = self.parts
        count = len(one.param_groups)
        one.param_groups, other.param_groups = self.param_groups[:count], self.param_groups[count:]
        one.state = other.state = self.state
