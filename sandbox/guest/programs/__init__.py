"""What runs inside a program's jail, with nothing but the standard library."""
