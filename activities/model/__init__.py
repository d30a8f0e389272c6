"""Ask a model what to do next: render the request, send it, price it, parse the answer."""
