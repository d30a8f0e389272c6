"""Code that runs inside a jail. It imports the standard library and its own folder, nothing else."""
