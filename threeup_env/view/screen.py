"""Turns pictures into pixels and shows them in a window; loads its libraries on first use."""

import importlib
import importlib.util
import io
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

FRAMES_PER_SECOND: Final = 2
"""How fast a game is shown."""
RENDER_MODES: Final = ("ansi", "rgb_array", "human")
FRAME_WIDTH: Final = 960
"""Of `rgb_array`, in pixels."""
WINDOW_WIDTH: Final = 1120
"""In pixels; its height fits a laptop's screen."""
_FONTS: Final = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")


def pixels(svg: str, width: int = FRAME_WIDTH) -> npt.NDArray[np.uint8]:
    """Rasterise a drawing, with the same letters on every computer.

    Args:
        svg: of `picture.draw`.
        width: in pixels; the height is in proportion.

    Returns:
        uint8 `[height, width, 3]`.

    Raises:
        ImportError: the extra `[render]` isn't installed; says how to get it.
    """
    resvg, image = _load("resvg_py"), _load("PIL.Image")
    png = resvg.svg_to_bytes(
        svg_string=svg,
        width=width,
        background="white",
        font_files=_font_files(),
        skip_system_fonts=True,
    )
    return np.asarray(image.open(io.BytesIO(png)).convert("RGB"))


class Window:
    """A window on the screen, opened by the first picture; a copy starts closed."""

    def __init__(self) -> None:
        self._surface: Any = None
        self._clock: Any = None

    def show(self, svg: str) -> None:
        """Show a drawing, no sooner than the one before has been seen.

        Raises:
            ImportError: the extra `[render]` isn't installed; says how to get it.
        """
        pygame = _load("pygame")
        frame = pixels(svg, WINDOW_WIDTH)
        height, width, _ = frame.shape
        if self._surface is None:
            pygame.display.init()
            pygame.display.set_caption("3UP 3DOWN")
            self._surface = pygame.display.set_mode((width, height))
            self._clock = pygame.time.Clock()
        pygame.event.pump()
        pygame.surfarray.blit_array(self._surface, frame.swapaxes(0, 1))
        pygame.display.flip()
        self._clock.tick(FRAMES_PER_SECOND)

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._surface is not None:
            _load("pygame").display.quit()
            self._surface = self._clock = None

    def __reduce__(self) -> tuple[type["Window"], tuple[()]]:
        return Window, ()


def _load(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"rendering needs {name.partition('.')[0]}: pip install 'threeup[render]'"
        ) from error


def _font_files() -> list[str]:
    """The fonts that matplotlib brings along; it is found without being loaded."""
    spec = importlib.util.find_spec("matplotlib")
    if spec is None or spec.origin is None:
        raise ImportError("rendering needs matplotlib's fonts: pip install 'threeup[render]'")
    folder = Path(spec.origin).parent / "mpl-data" / "fonts" / "ttf"
    return [str(folder / name) for name in _FONTS]
