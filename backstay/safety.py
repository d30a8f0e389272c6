"""Say how dangerous a tool is."""

from enum import StrEnum


class Safety(StrEnum):
    """Class a tool by the worst it can do; the order is the order of danger."""

    READ_ONLY = "read_only"
    WRITE_SAFE = "write_safe"
    RESTRICTED_WRITE = "restricted_write"

    @property
    def level(self) -> int:
        """Return 0, 1 or 2; higher is more dangerous."""
        return list(Safety).index(self)
