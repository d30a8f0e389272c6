"""Know the private members of a JSON Web Key."""

SECRET_PARTS = frozenset(("d", "p", "q", "dp", "dq", "qi", "k", "oth"))
