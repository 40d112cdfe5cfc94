"""Exact play where the game is small enough: its whole tree, equilibria, best responses."""
