"""Agents that are programs of any language, and what holds such processes in check."""
