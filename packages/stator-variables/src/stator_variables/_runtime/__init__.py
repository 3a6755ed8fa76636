"""What guards and generated entries call at run time, and reads of real objects past what their classes define."""
