"""What a run changed in the world, and how each change is taken back."""
