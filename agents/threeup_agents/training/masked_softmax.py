"""The softmax over legal actions: drawing from it, evaluating it, and its gradient.

A handful of the actions are legal in a position, so loops over these beat tensor
expressions over all of them several times. Sums are in double precision, which makes
the probabilities of a rollout and of its update equal as far as the networks' are.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from threeup_env.engine.compiled import compiled


def log_probs_and_entropies(
    logits: torch.Tensor, action_masks: torch.Tensor, actions: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities of actions and entropies of their distributions; differentiable.

    Args:
        logits: float32 or float64 `[N, A]`.
        action_masks: bool `[N, A]`; each row has a True.
        actions: int64 `[N]`.

    Returns:
        Two tensors `[N]`.
    """
    apply: Any = MaskedSoftmax.apply  # torch gives it no types
    log_probs, entropies = apply(logits, action_masks, actions)
    return log_probs, entropies


class MaskedSoftmax(torch.autograd.Function):
    """`log_probs_and_entropies` for autograd."""

    @staticmethod
    def forward(
        ctx: Any, logits: torch.Tensor, action_masks: torch.Tensor, actions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Evaluate, and keep the probabilities for the gradient."""
        probabilities = torch.empty_like(logits)
        log_probs = logits.new_empty(len(logits))
        entropies = logits.new_empty(len(logits))
        evaluate(
            logits.detach().numpy(),
            action_masks.numpy(),
            actions.numpy(),
            probabilities.numpy(),
            log_probs.numpy(),
            entropies.numpy(),
        )
        ctx.save_for_backward(probabilities, actions, entropies)
        return log_probs, entropies

    @staticmethod
    def backward(
        ctx: Any, log_prob_gradients: torch.Tensor, entropy_gradients: torch.Tensor
    ) -> tuple[torch.Tensor, None, None]:
        """Chain rule into the logits."""
        probabilities, actions, entropies = ctx.saved_tensors
        gradients = torch.empty_like(probabilities)
        write_gradients(
            probabilities.numpy(),
            actions.numpy(),
            entropies.numpy(),
            log_prob_gradients.contiguous().numpy(),
            entropy_gradients.contiguous().numpy(),
            gradients.numpy(),
        )
        return gradients, None, None


@compiled
def evaluate(
    logits: npt.NDArray[Any],
    action_masks: npt.NDArray[np.bool_],
    actions: npt.NDArray[np.int64],
    probabilities: npt.NDArray[Any],
    log_probs: npt.NDArray[Any],
    entropies: npt.NDArray[Any],
) -> None:
    """Evaluate the masked softmax in each row.

    Args:
        logits: `[N, A]`.
        action_masks: bool `[N, A]`; each row has a True.
        actions: int64 `[N]`.
        probabilities: `[N, A]`; overwritten, 0 where illegal.
        log_probs: of `actions`; `[N]`; overwritten.
        entropies: `[N]`; overwritten.
    """
    for row in range(len(logits)):
        highest = -np.inf
        for action in range(logits.shape[1]):
            probabilities[row, action] = 0.0
            if action_masks[row, action] and logits[row, action] > highest:
                highest = logits[row, action]
        total = 0.0
        weighted = 0.0
        for action in range(logits.shape[1]):
            if action_masks[row, action]:
                below = logits[row, action] - highest
                weight = np.exp(below)
                probabilities[row, action] = weight
                total += weight
                weighted += weight * below
        log_total = np.log(total)
        for action in range(logits.shape[1]):
            if action_masks[row, action]:
                probabilities[row, action] /= total
        entropies[row] = log_total - weighted / total
        log_probs[row] = logits[row, actions[row]] - highest - log_total


@compiled
def write_gradients(
    probabilities: npt.NDArray[Any],
    actions: npt.NDArray[np.int64],
    entropies: npt.NDArray[Any],
    log_prob_gradients: npt.NDArray[Any],
    entropy_gradients: npt.NDArray[Any],
    gradients: npt.NDArray[Any],
) -> None:
    """Write the gradient of the logits from those of log-probabilities and entropies.

    With p the probabilities and H the entropy: d log p[a] / d logit[j] = [j = a] - p[j],
    and dH / d logit[j] = -p[j] (log p[j] + H).

    Args:
        probabilities: `[N, A]`.
        actions: int64 `[N]`.
        entropies: `[N]`.
        log_prob_gradients: `[N]`.
        entropy_gradients: `[N]`.
        gradients: `[N, A]`; overwritten.
    """
    for row in range(len(probabilities)):
        for action in range(probabilities.shape[1]):
            gradients[row, action] = 0.0
            p = probabilities[row, action]
            if p > 0.0:
                from_entropy = entropy_gradients[row] * (np.log(p) + entropies[row])
                gradients[row, action] = -p * (log_prob_gradients[row] + from_entropy)
        gradients[row, actions[row]] += log_prob_gradients[row]


@compiled
def choose(
    logits: npt.NDArray[np.float32],
    action_masks: npt.NDArray[np.bool_],
    uniforms: npt.NDArray[np.float64],
    actions: npt.NDArray[np.int64],
    log_probs: npt.NDArray[np.float32],
) -> None:
    """Draw from the masked softmax, one action a row.

    Args:
        logits: float32 `[N, A]`.
        action_masks: bool `[N, A]`; each row has a True.
        uniforms: from 0 to below 1; float64 `[N]`.
        actions: int64 `[N]`; overwritten.
        log_probs: of the actions; float32 `[N]`; overwritten.
    """
    weights = np.empty(logits.shape[1], np.float64)
    for row in range(len(logits)):
        highest = -np.inf
        for action in range(logits.shape[1]):
            if action_masks[row, action] and logits[row, action] > highest:
                highest = logits[row, action]
        total = 0.0
        for action in range(logits.shape[1]):
            weights[action] = 0.0
            if action_masks[row, action]:
                weights[action] = np.exp(logits[row, action] - highest)
                total += weights[action]
        left = uniforms[row] * total
        chosen = -1
        for action in range(logits.shape[1]):
            if weights[action] > 0.0 and left >= 0.0:
                chosen = action
                left -= weights[action]
        actions[row] = chosen
        log_probs[row] = logits[row, chosen] - highest - np.log(total)
