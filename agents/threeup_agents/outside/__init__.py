"""Agents that this project knows nothing of: a person's code, and networks of other libraries."""
