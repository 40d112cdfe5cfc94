"""A game once more: recorded, judged, as a page."""
