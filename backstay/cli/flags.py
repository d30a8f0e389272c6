"""The arguments that several commands share, each described once."""

from typing import Annotated, Literal

from cyclopts import Parameter

Workflow = Annotated[str, Parameter(help="The run's id.")]
Request = Annotated[str, Parameter(help="The request's id, such as r1.")]
By = Annotated[str | None, Parameter(help="Who does this; the name of your account when left out.")]
Yes = Annotated[bool, Parameter(negative="", help="Approve calls without asking.")]
Comment = Annotated[str, Parameter(help="Why; it is kept, and the model reads it.")]
User = Annotated[str, Parameter(help="For whom the run works, or would work.")]
Output = Annotated[Literal["text", "json"], Parameter(help="How the result is printed on stdout.")]
