"""What a provider of tools is, what it lists, what it answers, and what it may ask back."""
