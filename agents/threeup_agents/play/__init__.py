"""A person's game against agents, in a terminal or a notebook."""
