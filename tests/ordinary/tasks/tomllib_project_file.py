# result: {"name": "demo", "released": "2024-05-01", "steps": ["lint"], "ratio": 0.5, "problem": true}
import tomllib

TEXT = """
[project]
name = "demo"
version = "1.2.3"
requires = ["a>=1", "b"]
released = 2024-05-01
[tool.run]
steps = [{ name = "lint", fast = true }, { name = "test" }]
ratio = 0.5
"""


async def main():
    data = tomllib.loads(TEXT)
    try:
        tomllib.loads("a = ")
        problem = None
    except tomllib.TOMLDecodeError as e:
        problem = bool(str(e))
    return {
        "name": data["project"]["name"],
        "released": data["project"]["released"].isoformat(),
        "steps": [s["name"] for s in data["tool"]["run"]["steps"] if s.get("fast")],
        "ratio": data["tool"]["run"]["ratio"],
        "problem": problem,
    }
