"""What is kept of a server's question: all that is needed to ask it again as it was asked."""

from activities.tools.elicitations import Elicitations
from backstay.requests import CallTool
from tests.requirements import promise
from toolbox.providers.elicitation import ElicitationRequest, InputRequired

FORM = {"type": "object", "properties": {"zeta": {"type": "string"}, "alpha": {"enum": ["b", "a"]}}}


@promise("approvals:form-order")
async def test_a_question_that_is_asked_again_has_its_fields_in_the_same_order(opened):
    asked = InputRequired(requests=(ElicitationRequest(key="answer", message="What?", form=FORM),))
    async with opened() as (_, records, _transcripts):
        elicitations = Elicitations(records)
        first = await elicitations.keep("w/r", "office", asked)
        ask = CallTool.model_construct(run="w/r", question=first.sealed, reply=None)
        again = await elicitations.again(ask, "office")
        reply = await elicitations.reply(ask)
    assert again == first
    assert [*again.form["properties"]] == ["zeta", "alpha"]
    assert reply is not None
    assert (reply.required, reply.declined) == (asked, True)
