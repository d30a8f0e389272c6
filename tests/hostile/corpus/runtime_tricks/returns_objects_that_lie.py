# holds: result_is_json, in_time
# ends: any
class Odd(dict):
    def items(self):
        yield "a", Odd()

    def __iter__(self):
        return iter(["a"])

    def __len__(self):
        return 1

    def __class__(self):
        return str


class Text(str):
    def __str__(self):
        return "another"


class Number(int):
    def __repr__(self):
        return '1}}{"calls": []'

    __str__ = __repr__


return {"number": Number(5), "text": Text("x"), "odd": Odd(a=1)}
