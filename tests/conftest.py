"""What every test shares."""

import os

import numpy as np
from hypothesis import settings

settings.register_profile("threeup", deadline=None)  # the first example compiles
settings.load_profile("threeup")

if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
    np.seterr(over="ignore")  # splitmix64 wraps around, which only uncompiled numpy remarks on
