# result: {"letter": "Dear Lin,\nyou owe $12.00.", "safe": "1 $b", "bare": "Hello world again", "caesar": "dwwdfn dw gdzq", "money": "    1,234,567.89", "percent": "12.3%", "hex": "0x00ff 00000101", "debug": "width=16", "title": "The Old Man", "cases": ["STRASSE", "àb", ["a", "-", "b_c"]]}
import string
from string import Template


async def main():
    letter = Template("Dear $name,\nyou owe $$${amount}.")
    table = str.maketrans("", "", string.punctuation)
    caesar = str.maketrans(string.ascii_lowercase, string.ascii_lowercase[3:] + string.ascii_lowercase[:3])
    value, width = 1234567.891, 16
    return {
        "letter": letter.substitute(name="Lin", amount="12.00"),
        "safe": Template("$a $b").safe_substitute(a=1),
        "bare": "Hello, world! (again)".translate(table),
        "caesar": "attack at dawn".translate(caesar),
        "money": f"{value:>{width},.2f}",
        "percent": f"{0.1234:.1%}",
        "hex": f"{255:#06x} {5:08b}",
        "debug": f"{width=}",
        "title": string.capwords("the old man"),
        "cases": ["straße".upper(), "ÀB".casefold(), "a-b_c".partition("-")],
    }
