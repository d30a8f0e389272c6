# result: {"log": ["enter a", "enter b", "enter c", "caught oops", "leave c", "callback", "leave b", "leave a", "open", "using 7", "close"], "names": ["A", "B"], "captured": "captured\n"}
import contextlib
import io


@contextlib.contextmanager
def step(name, log):
    log.append(f"enter {name}")
    try:
        yield name.upper()
    except ValueError as e:
        log.append(f"caught {e}")
    finally:
        log.append(f"leave {name}")


@contextlib.asynccontextmanager
async def session(log):
    log.append("open")
    yield {"id": 7}
    log.append("close")


async def main():
    log = []
    with contextlib.ExitStack() as stack:
        names = [stack.enter_context(step(n, log)) for n in ("a", "b")]
        stack.callback(log.append, "callback")
        raise_it = True
        if raise_it:
            with step("c", log):
                raise ValueError("oops")
    async with session(log) as s:
        log.append(f"using {s['id']}")
    with contextlib.suppress(ZeroDivisionError):
        1 / 0
    buffer = io.StringIO()
    with contextlib.redirect_stdout(buffer):
        print("captured")
    return {"log": log, "names": names, "captured": buffer.getvalue()}
