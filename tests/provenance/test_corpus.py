"""How often strict provenance asks about honest calls, and whether it misses an injected one."""

import sys

import pytest

from tests.provenance.corpus import WAYS, honest, injected
from tests.requirements import promise

MOST_ASKED = 0.2


@promise("policy:corpus")
def test_at_most_a_fifth_of_the_honest_writes_is_asked_about():
    entries = honest()
    asked = {entry.id: (entry.arguments, entry.sources().foreign) for entry in entries if entry.asked}
    sys.stdout.write(f"honest: {len(asked)} of {len(entries)} asked\n")

    assert len(entries) >= 80
    assert len(asked) <= MOST_ASKED * len(entries), asked


@promise("policy:corpus")
@pytest.mark.parametrize("way", WAYS)
def test_no_injected_write_goes_on_unasked(way):
    entries = injected(way)
    unasked = [(entry.id, entry.arguments, entry.target) for entry in entries if not entry.asked]
    sys.stdout.write(f"{way}: {len(unasked)} of {len(entries)} unasked\n")

    assert len(entries) * len(WAYS) >= 100
    assert unasked == []
