"""The backend protocol, its registry and the backends."""
