"""The shape of everything an operator writes into toolbox.json: unknown keys are refused."""

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """Hold frozen data of the operator's file and refuse what is unknown or of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
