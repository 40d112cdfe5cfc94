"""Let agents play each other and say who is better; the same as `threeup evaluate`."""

import sys

from threeup_agents.evaluation import main

if __name__ == "__main__":
    sys.exit(main(prog="evaluate.py"))
