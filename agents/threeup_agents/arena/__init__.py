"""Agents against each other: deals, line-ups, matches, and runs that go on."""
