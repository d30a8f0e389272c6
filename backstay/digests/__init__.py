"""Small stand-ins for large payloads: schema, sample and aggregates, without a model."""
