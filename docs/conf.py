"""How Sphinx makes a web site of these pages: `sphinx-build -W docs docs/_build/html`.

The pages are plain Markdown that reads well without it too. Docstrings are Google's
style; a word in backticks is code.
"""

import os
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
PATHS = [str(ROOT), str(ROOT / "agents")]
sys.path[:0] = PATHS

import threeup_env  # noqa: E402 - found by the line above

# The notebooks are executed with the sizes of the tests, by this very code.
os.environ["THREEUP_FAST"] = "1"
os.environ["PYTHONPATH"] = os.pathsep.join(PATHS)
shutil.copytree(ROOT / "notebooks", HERE / "notebooks", dirs_exist_ok=True)

project = "threeup"
author = "the threeup developers"
version = release = threeup_env.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]

nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 180
myst_heading_anchors = 3

default_role = "code"
autodoc_mock_imports = ["stable_baselines3"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_use_rtype = False

html_theme = "furo"
html_title = "threeup"
html_copy_source = False
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["pages.css"]
