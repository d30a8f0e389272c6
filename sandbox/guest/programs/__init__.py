"""What runs inside the jail, with nothing but its standard library."""
