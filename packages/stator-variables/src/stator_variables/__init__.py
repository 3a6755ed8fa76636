"""Variable trackers: what Python values mean symbolically, and the journal of their side effects."""
