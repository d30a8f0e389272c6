"""What a run may spend and what it has spent: reservations before, charges after."""
