"""Stand in for ctypes in a jail: pandas imports it, uses it on other systems only, and gets no machine code here."""

from typing import Never


def __getattr__(name: str) -> Never:
    """Refuse by name whatever is asked for."""
    raise AttributeError(f"ctypes.{name} is not available here: programs call no machine code")
