"""Do what the workflows order: one class per resource, built once per worker."""
