"""The home of a worker."""

from sandbox.isolation.way import make_home
from tests.requirements import promise


def mode(path):
    return path.stat().st_mode & 0o777


@promise("store:private-home")
def test_a_home_is_made_for_its_user_and_one_that_others_can_read_is_closed(tmp_path):
    assert make_home(tmp_path / "new") == []
    assert mode(tmp_path / "new") & 0o066 == 0
    known = tmp_path / "known"
    (known / "logs").mkdir(parents=True)
    known.chmod(0o755)
    (known / "logs").chmod(0o755)
    assert make_home(known) == [str(known), str(known / "logs")]
    assert make_home(known) == []
    assert (mode(known) & 0o066, mode(known / "logs")) == (0, 0o700)
