"""What can be called, how dangerous it is, and what a call leads to."""
