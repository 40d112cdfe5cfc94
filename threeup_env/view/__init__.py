"""The game for people: in words, as text, as pictures, in a window."""
