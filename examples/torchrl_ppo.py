# /// script
# requires-python = ">=3.10"
# dependencies = ["threeup", "torch==2.13.0", "torchrl==0.14.1"]
# ///
"""PPO of TorchRL by self-play on `PettingZooWrapper`: one policy for all seats.

    python torchrl_ppo.py

The wrapper gives a row a step with all seats in it, of which one acts; a seat's reward stands in
the step that ends the game, mostly another seat's. `OwnDecisions` makes of that what PPO needs:
each seat's decisions one after the other, each with what the seat is paid until its next one.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import tyro
from tensordict import TensorDict, TensorDictBase
from tensordict.nn import InteractionType, TensorDictModule
from torch import nn
from torchrl.envs import PettingZooWrapper
from torchrl.envs.transforms import Transform
from torchrl.modules import MaskedCategorical, ProbabilisticActor
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import threeup_env


@dataclass(frozen=True)
class Config:
    """PPO of TorchRL on 3UP 3DOWN."""

    num_players: int = 2  # seats at the table
    games: int = 1500  # to learn from
    per_update: int = 25
    epochs: int = 4  # passes over the decisions of an update
    minibatch: int = 512  # decisions of a gradient step
    learning_rate: float = 1e-3
    max_steps: int = 1000  # the action that cuts a game off
    seed: int = 1  # starts deals, network and choices


class Network(nn.Module):
    """Logits, or with `num_outputs` of 1 values, of int8 observations `[..., F]`."""

    def __init__(self, num_features: int, num_outputs: int) -> None:
        super().__init__()
        hidden = nn.Linear(2 * num_features, 128)
        self.layers = nn.Sequential(hidden, nn.ReLU(), nn.Linear(128, num_outputs))

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        """`[..., num_outputs]`."""
        parts = [seen.float().log1p(), (seen > 0).float()]
        return torch.as_tensor(self.layers(torch.cat(parts, dim=-1)))


class OwnDecisions(Transform):  # type: ignore[misc]
    """From steps of whole games `[T]` to the decisions of each seat, one seat after the other."""

    def forward(self, tensordict: TensorDictBase) -> list[TensorDictBase]:
        """A batch a seat, `[N]`, in the form of a single agent's transitions."""
        acting = tensordict["seats", "mask"]
        rewards = tensordict["next", "seats", "reward"][..., 0]
        ends = tensordict["next", "done"][:, 0]
        found = []
        for seat in range(acting.shape[1]):
            (at,) = torch.nonzero(acting[:, seat], as_tuple=True)
            until = torch.cat([at[1:], torch.tensor([len(acting)])])
            spans = list(zip(at.tolist(), until.tolist(), strict=True))
            paid = torch.stack([rewards[first:last, seat].sum() for first, last in spans])
            over = torch.stack([ends[first:last].any() for first, last in spans])
            seats = tensordict["seats"][at][:, seat]
            own = seats.select("action", "action_mask", "action_log_prob")
            own["observation"] = seats["observation", "observation"]
            # The values of what follows an end don't count, whatever is seen there. A game that
            # is cut off has a real outcome: it counts as terminated.
            following = {"observation": own["observation"].roll(-1, 0), "reward": paid[:, None]}
            own["next"] = TensorDict(
                following | {"done": over[:, None], "terminated": over[:, None]}, len(at)
            )
            found.append(own)
        return found


class Player:
    """The policy as an agent."""

    def __init__(self, network: Network) -> None:
        self.network = network

    @torch.no_grad()
    def act(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """Sample a legal action a row."""
        logits, masks = self.network(torch.tensor(observations)), torch.tensor(action_masks)
        return np.asarray(MaskedCategorical(logits=logits, mask=masks).sample())


def actor(network: Network, *place: str) -> ProbabilisticActor:
    """The policy that reads and writes at a place of a tensordict; of the seats the views nest."""
    seen = (*place, "observation", "observation") if place else "observation"
    keys = {name: (*place, name) for name in ("logits", "action_mask", "action")}
    return ProbabilisticActor(
        TensorDictModule(network, in_keys=[seen], out_keys=[keys["logits"]]),
        in_keys={"logits": keys["logits"], "mask": keys["action_mask"]},
        out_keys=[keys["action"]],
        distribution_class=MaskedCategorical,
        default_interaction_type=InteractionType.RANDOM,  # else it takes the most probable
        return_log_prob=True,
    )


def train(config: Config) -> Player:
    """Train a policy."""
    torch.manual_seed(config.seed)
    game = threeup_env.raw_env(config.num_players, max_steps=config.max_steps)
    env = PettingZooWrapper(
        game, use_mask=True, group_map={"seats": game.possible_agents}, seed=config.seed
    )
    num_features = env.observation_spec["seats", "observation", "observation"].shape[-1]
    policy = Network(num_features, len(threeup_env.ACTION_NAMES))
    critic = TensorDictModule(
        Network(num_features, 1), in_keys=["observation"], out_keys=["state_value"]
    )
    advantages = GAE(gamma=1.0, lmbda=0.95, value_network=critic)
    loss = ClipPPOLoss(actor(policy), critic, entropy_coeff=0.01, normalize_advantage=True)
    adam = torch.optim.Adam(loss.parameters(), config.learning_rate)
    for played in range(0, config.games, config.per_update):
        with torch.no_grad():
            games = [env.rollout(10**6, actor(policy, "seats")) for _ in range(config.per_update)]
            batch = torch.cat([advantages(chain) for chain in OwnDecisions()(torch.cat(games))])
        for _ in range(config.epochs):
            for rows in torch.split(torch.randperm(len(batch)), config.minibatch):
                losses = loss(batch[rows])
                adam.zero_grad()
                sum(part for name, part in losses.items() if name.startswith("loss_")).backward()
                nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
                adam.step()
        print(f"{played + config.per_update} games, {len(batch)} decisions in the last ones")
    return Player(policy)


if __name__ == "__main__":
    train(tyro.cli(Config, description=__doc__))
