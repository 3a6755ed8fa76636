"""Ends of objects while tracing: reachability among trackers, suspended generators,
finalization."""
