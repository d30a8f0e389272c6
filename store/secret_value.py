"""What a secret handle stands for."""

from pydantic import Field

from backstay.noun import Noun


class SecretValue(Noun):
    """Hold a secret and the provider it came from; neither `repr` nor a dump shows the value."""

    provider: str
    value: str = Field(repr=False, exclude=True)
