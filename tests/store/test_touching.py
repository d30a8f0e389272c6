"""What counts as an identifier, by which effects of later runs are named in an undo."""

import pytest

from store.effects.touching import identifiers_in
from tests.requirements import promise


@promise("sessions:undo")
@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"to": "bo@example.com", "body": "Dear Bo, it is due."}, {"bo@example.com"}),
        ({"path": "reports/may.md", "mode": "write"}, {"reports/may.md"}),
        ({"file": "may.md"}, {"may.md"}),
        ({"invoice": "INV-2041", "currency": "EUR", "paid": True}, {"INV-2041"}),
        ({"invoice_id": 7, "count": 12, "amount": 20410}, {"7", "20410"}),
        ({"userId": 7, "paid": False, "valid": 8}, {"7"}),
        ({"at": "2026-05-01T10:00:00Z", "day": "2026-05-01", "rate": 0.25}, set()),
        ([{"rows": [{"code": "x1y"}, {"code": "x1"}]}, None, "y" * 300 + "1"], {"x1y"}),
    ],
)
def test_what_identifies_a_thing_and_what_does_not(value, found):
    assert set(identifiers_in(value)) == found
