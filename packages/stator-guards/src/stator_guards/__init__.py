"""Sources, guards and the guarded cache: when may a specialised version of a function run again."""
