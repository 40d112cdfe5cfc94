"""Fit a policy by self-play; the same as `threeup train`."""

import sys

from threeup_agents.training.__main__ import main

if __name__ == "__main__":
    sys.exit(main(prog="train.py"))
