# result: {"text": "{\"names\": [\"Zo\\u00eb\", \"Bob\"], \"tags\": [\"a\", \"b\"]}", "problem": 1, "pretty": "{\n  \"id\": 2,\n  \"name\": \"Bob\",\n  \"tags\": []\n}", "lines": 5}
import json

RAW = '{"users": [{"id": 1, "name": "Zoë", "tags": ["a", "b"]}, {"id": 2, "name": "Bob", "tags": []}], "next": null}'


class SetEncoder(json.JSONEncoder):
    def default(self, o):
        if isinstance(o, set):
            return sorted(o)
        return super().default(o)


async def main():
    data = json.loads(RAW)
    tags = {t for u in data["users"] for t in u["tags"]}
    text = json.dumps({"tags": tags, "names": [u["name"] for u in data["users"]]}, cls=SetEncoder, sort_keys=True)
    try:
        json.loads('{"a": 1,}')
    except json.JSONDecodeError as e:
        problem = e.lineno
    pretty = json.dumps(data["users"][1], indent=2)
    return {"text": text, "problem": problem, "pretty": pretty, "lines": len(pretty.splitlines())}
