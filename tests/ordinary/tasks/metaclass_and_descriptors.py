# result: {"keys": ["csv"], "width": 4, "problem": "width must be positive", "made": 2, "signature": "(self, width)"}
import inspect


class Positive:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        return self if instance is None else getattr(instance, self.name)

    def __set__(self, instance, value):
        if value <= 0:
            raise ValueError(f"{self.name[1:]} must be positive")
        setattr(instance, self.name, value)


class Plugin:
    registry = {}

    def __init_subclass__(cls, *, key, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.registry[key] = cls


class Csv(Plugin, key="csv"):
    width = Positive()

    def __init__(self, width):
        self.width = width


class Counting(type):
    made = 0

    def __call__(cls, *args, **kwargs):
        Counting.made += 1
        return super().__call__(*args, **kwargs)


class Thing(metaclass=Counting):
    pass


async def main():
    Thing(), Thing()
    try:
        Csv(0)
    except ValueError as e:
        problem = str(e)
    signature = str(inspect.signature(Csv.__init__))
    return {"keys": list(Plugin.registry), "width": Csv(4).width, "problem": problem, "made": Counting.made, "signature": signature}
