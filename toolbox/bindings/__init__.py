"""Write the Python functions by which programs call tools."""
