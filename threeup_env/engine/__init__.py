"""The game itself: cards, rules, many games in lock-step, and what a seat may know."""
