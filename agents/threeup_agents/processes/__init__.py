"""Agents that are processes of their own, and what holds such processes in check."""
