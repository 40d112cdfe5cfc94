"""Policies of other libraries: networks from observations to one number an action.

TorchScript needs torch, ONNX needs onnxruntime; each is loaded when such a file is named.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from threeup_env.engine.actions import NUM_ACTIONS
from threeup_env.engine.cards import MAX_SEATS, MIN_SEATS
from threeup_env.engine.checks import checked_masks, checked_observations
from threeup_env.engine.observation import num_players_of, observation_size

Logits: TypeAlias = Callable[[npt.NDArray[np.int8], npt.NDArray[np.bool_]], npt.NDArray[Any]]
"""From observations, int8 `[B, F]`, and masks, bool `[B, A]`, to a number an action, `[B, A]`."""


class Network:
    """Plays by the logits of a network: samples from the legal ones, or takes the highest.

    Args:
        logits: the network; illegal actions are left out here, whatever it says of them.
        path: the file that it came from.
        seed: starts the agent's own random stream.
        best_action: take the highest, the first of equals.
    """

    def __init__(self, logits: Logits, path: Path, seed: int = 0, best_action: bool = False):
        self.name = path.stem
        self._logits = logits
        self._path = path
        self._best_action = best_action
        self._rng = np.random.default_rng(seed)

    def act(
        self, observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """Choose one legal action per row, as `Agent.act`.

        Raises:
            ValueError: the network doesn't take observations of this table size, or gives
                something else than a finite number for each action.
        """
        observations = checked_observations(observations)
        masks = checked_masks(action_masks)
        logits = np.asarray(self._logits(observations, masks))
        where = f"policy {str(self._path)!r}"
        if logits.shape != masks.shape or logits.dtype.kind != "f":
            raise ValueError(
                f"{where}: expected logits, floats [B, {NUM_ACTIONS}], here {masks.shape}; "
                f"got {logits.dtype} of shape {logits.shape}"
            )
        if not np.isfinite(logits[masks]).all():
            raise ValueError(
                f"{where}: expected finite logits for legal actions; "
                f"got {logits[masks][~np.isfinite(logits[masks])][0]}"
            )
        legal = np.where(masks, logits, -np.inf).astype(np.float64)
        if not self._best_action:
            # Gumbel's trick: the highest of logits and such noise is a sample of the softmax.
            legal += self._rng.gumbel(size=legal.shape)
        chosen: npt.NDArray[np.int64] = legal.argmax(axis=1)
        return chosen

    def data_files(self, num_players: int) -> list[Path]:
        """The policy file, and the weights beside it that an ONNX file may have."""
        return [self._path, *sorted(self._path.parent.glob(f"{self._path.name}.*"))]


def check_size(path: Path, size: int, observations: npt.NDArray[np.int8]) -> None:
    """Refuse observations of another size than a network takes.

    Raises:
        ValueError: names the table sizes.
    """
    if observations.shape[1] != size:
        sizes = {observation_size(n): n for n in range(MIN_SEATS, MAX_SEATS + 1)}
        table = f", {sizes[size]} players" if size in sizes else ", which is no table's"
        raise ValueError(
            f"policy {str(path)!r}: expected observations of {size} numbers{table}; got "
            f"{observations.shape[1]}, {num_players_of(observations)} players"
        )


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread: more would change sums, and be slower on small networks."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_num_threads(before)


def torchscript(path: Path, seed: int = 0, best_action: bool = False) -> Network:
    """Load a TorchScript file: float32 `[B, F]` to logits `[B, A]`.

    It holds a program of its own, in a language without Python's reach, whose operators can
    still write files: for who is trusted.

    Raises:
        ValueError: no such file, or not one of these.
        ImportError: torch isn't installed.
    """
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            f"{path}: TorchScript needs torch: pip install 'threeup[train]' ({error})"
        ) from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # TorchScript as a whole
        try:
            module = torch.jit.load(path, map_location="cpu").eval()  # type: ignore[no-untyped-call]
        except (RuntimeError, ValueError) as error:
            first = str(error).strip().splitlines()[0]
            raise ValueError(
                f"policy {str(path)!r}: expected a TorchScript file, of torch.jit.save; got {first}"
            ) from error

    def logits(
        observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[Any]:
        with one_thread():
            try:
                found = module(torch.from_numpy(observations.astype(np.float32)))
            except RuntimeError as error:
                last = str(error).strip().splitlines()[-1]
                raise ValueError(
                    f"policy {str(path)!r}: expected a network of {observations.shape[1]} "
                    f"inputs, those of {num_players_of(observations)} players; got {last}"
                ) from error
        numbers: npt.NDArray[Any] = np.asarray(found)
        return numbers

    return Network(logits, path, seed, best_action)


def onnx(path: Path, seed: int = 0, best_action: bool = False) -> Network:
    """Load an ONNX file: float32 `[B, F]` to logits `[B, A]`, on one thread of the CPU.

    Its operators are those of onnxruntime; it brings none, and nothing in it is executed.

    Raises:
        ValueError: not one of these, or of another input.
        ImportError: onnxruntime isn't installed.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(
            f"{path}: ONNX needs onnxruntime: pip install 'threeup[onnx]' ({error})"
        ) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised, and said here
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a class for each cause, none of them public
        raise ValueError(f"policy {str(path)!r}: expected an ONNX file; got {error}") from error
    inputs = [(each.type, each.shape) for each in session.get_inputs()]
    if len(inputs) != 1 or inputs[0][0] != "tensor(float)" or len(inputs[0][1]) != 2:
        raise ValueError(
            f"policy {str(path)!r}: expected one input, tensor(float) of shape [B, F]; got {inputs}"
        )
    (name,) = (each.name for each in session.get_inputs())
    rows, size = inputs[0][1]
    if isinstance(rows, int):
        raise ValueError(
            f"policy {str(path)!r}: expected an input of any number of rows (export it with a "
            f"dynamic first axis); got {rows}"
        )

    def logits(
        observations: npt.NDArray[np.int8], action_masks: npt.NDArray[np.bool_]
    ) -> npt.NDArray[Any]:
        check_size(path, size if isinstance(size, int) else observations.shape[1], observations)
        try:
            found: npt.NDArray[Any] = session.run(None, {name: observations.astype(np.float32)})[0]
        except Exception as error:
            raise ValueError(f"policy {str(path)!r}: expected it to run; got {error}") from error
        return found

    return Network(logits, path, seed, best_action)
