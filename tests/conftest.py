"""What every test shares."""

from hypothesis import settings

settings.register_profile("threeup", deadline=None)  # the first example compiles
settings.load_profile("threeup")
