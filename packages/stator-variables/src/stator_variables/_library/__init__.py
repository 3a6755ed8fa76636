"""Handlers of C functions of the standard library, and the policy for those that read the
process."""
