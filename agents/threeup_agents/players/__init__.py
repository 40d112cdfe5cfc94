"""The agents that choose at once: by a rule, or by a trained policy."""
