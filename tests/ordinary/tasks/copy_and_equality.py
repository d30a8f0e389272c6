# result: {"shallow": {"a": [1, 2, 9], "b": {"c": 3}}, "deep": {"a": [1, 2], "b": {"c": 3}}, "tree": [2, 3], "cycle": true}
import copy


class Node:
    def __init__(self, value, children=()):
        self.value, self.children = value, list(children)

    def __deepcopy__(self, memo):
        return Node(self.value, copy.deepcopy(self.children, memo))


async def main():
    original = {"a": [1, 2], "b": {"c": 3}}
    shallow, deep = copy.copy(original), copy.deepcopy(original)
    original["a"].append(9)
    tree = Node(1, [Node(2), Node(3)])
    twin = copy.deepcopy(tree)
    twin.children[0].value = 99
    loop = []
    loop.append(loop)
    again = copy.deepcopy(loop)
    return {"shallow": shallow, "deep": deep, "tree": [c.value for c in tree.children], "cycle": again[0] is again}
