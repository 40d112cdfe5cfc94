"""The agents that look ahead, in worlds drawn from what they see."""
