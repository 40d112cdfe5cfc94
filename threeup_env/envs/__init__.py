"""The game as other libraries expect it."""
