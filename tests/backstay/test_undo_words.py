"""How a call is undone, as people read it."""

import pytest

from backstay.approvals.undo_words import undo_words
from tests.requirements import promise

ARGUMENTS = {"id": "c2", "fields": {"city": "Bergen"}, "n": 7, "long": "x" * 100}


@promise("undo:in-words")
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("recall_email(message_id=result.message_id)", "recall_email, with message_id from its answer"),
        ("delete_note(id=result.note.id)", "delete_note, with id from its answer (note.id)"),
        ("update(id=arguments.id, fields=result.before)", "update, with id c2, fields from its answer (before)"),
        ("update(id=arguments.n, fields=arguments.fields)", "update, with id 7, the same fields"),
        ("restore(key=arguments.gone)", "restore, with key from its argument gone"),
        ("undo(result=result, arguments=arguments)", "undo, with its answer, its arguments"),
        ('post(to="a, (b) \\"c", list=[1,2])', 'post, with to "a, (b) \\"c", list [1,2]'),
        ("put(name=result.a ~ '-' ~ result.b)", "put, with name result.a ~ '-' ~ result.b"),
        (f"put(name={'y' * 90})", f"put, with name {'y' * 60}…"),
        ("undo()", "undo"),
        ("restores the snapshot", "restores the snapshot"),
        ("", ""),
    ],
)
def test_the_call_that_undoes_is_told_in_words(how, said):
    assert undo_words(how, ARGUMENTS) == said
