# result: {"lines": ["first", "second", "third"], "bytes": "6800e9000d000a00", "peeked": "01", "read": ["012", "3456789"], "whence": 2}
import io


async def main():
    text = io.StringIO("first\nsecond\nthird")
    lines = [line.rstrip() for line in text]
    raw = io.BytesIO()
    wrapper = io.TextIOWrapper(raw, encoding="utf-16-le", newline="\r\n", write_through=True)
    wrapper.write("hé\n")
    raw.seek(0)
    reader = io.BufferedReader(io.BytesIO(b"0123456789"), buffer_size=4)
    peeked = reader.peek(2)[:2]
    return {
        "lines": lines,
        "bytes": raw.read().hex(),
        "peeked": peeked.decode(),
        "read": [reader.read(3).decode(), reader.read().decode()],
        "whence": io.SEEK_END,
    }
