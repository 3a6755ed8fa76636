"""Functions that guards and generated entries call at run time, and reads of real objects past
their classes."""
