import inspect
import sys
import warnings
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from backstay.settings import Settings
from sandbox.guest.programs.source import prepare
from sandbox.programs import check as checking
from sandbox.programs.check import MOST_FAULTS, blocked_uses, check_program
from tests.requirements import promise
from tests.sizes import sized

STANDARD = frozenset(sys.stdlib_module_names) - {"subprocess", "socket"}


async def search(*, query, limit=10): ...


async def send_email(*, to, subject, body=""): ...


async def update(*, key, **others): ...


async def now(): ...


FUNCTIONS = {
    "mail": {"search": inspect.signature(search), "send_email": inspect.signature(send_email)},
    "crm": {"update": inspect.signature(update)},
    "time": {"now": inspect.signature(now)},
}


def check(source, importable=STANDARD):
    return check_program(source, functions=FUNCTIONS, importable=importable)


@promise("programs:fits")
@pytest.mark.parametrize(
    "source",
    [
        "",
        "return 1",
        "found = await mail.search(query='x')\nreturn [one['id'] for one in found]",
        "return await mail.search(query='x', limit=3)",
        "await mail.send_email(**{'to': 'a', 'subject': 'b'})",
        "await crm.update(key=1, anything='else')\nawait time.now()",
        "import asyncio\nreturn await asyncio.gather(*(mail.search(query=q) for q in 'abc'))",
        "import asyncio\ntask = asyncio.create_task(mail.search(query='a'))\nreturn await task",
        "from sandbox_py.servers import mail as post, crm\nreturn await post.search(query='x')",
        "from sandbox_py.servers.mail import search as find\nreturn await find(query='x')",
        "import sandbox_py.servers\nreturn await sandbox_py.servers.mail.search(query='x')",
        "from sandbox_py import servers\nreturn await servers.mail.search(query='x')",
        "from sandbox_py.client import ToolError as No, result\ntry:\n    await result('r')\nexcept No:\n    pass",
        "try:\n    await mail.search(query='x')\nexcept ToolError as error:\n    return str(error)",
        "return await result('ref')",
        "async def solve():\n    return await mail.search(query='x')",
        "mail = [1]\nmail.append(2)\nreturn mail.anything(3)",
        "def send(mail):\n    return mail.anything()\nreturn send({})",
        "try:\n    import numpy\nexcept ImportError:\n    numpy = None",
        "try:\n    import numpy, orjson\nexcept Exception:\n    pass",
        "try:\n    unknown\nexcept NameError:\n    return 'fine'",
        "from math import *\nreturn floor(pi)",
        "exec('x = 1')\nreturn x",
        "from __future__ import annotations\nimport xml.etree.ElementTree as tree\nreturn str(tree)",
        "async def pages():\n    yield 1\nreturn [page async for page in pages()]",
        "async def one():\n    return 1\nreturn await one()",
        "async def go():\n    return 1\nasyncio.run(go())",
        "class mine:\n    async def search(self): ...\nmine().search",
        "return mail.search.__name__",
        "exit(1)",
    ],
)
def test_nothing_is_said_of_a_program_that_fits(source):
    assert check(source) == []


@promise("programs:numpy-now")
@pytest.mark.parametrize(
    "use",
    [
        "np.datetime64('now')",
        "np.datetime64(b'Today', 'D')",
        "np.array(['2024-01-01', 'NOW'], dtype='datetime64[s]')",
        "np.asarray(['now'], '<M8[s]')",
        "np.arange('today', '2030-01-01', dtype=np.datetime64)",
        "np.busday_offset('today', 0)",
        "np.busdaycalendar(holidays=['today'])",
        "np.array('now', np.dtype('M8[s]'))",
        "np.array('now', dtype=np.dtype(np.datetime64))",
        "np.array('now', dtype='|M8[s]')",
    ],
)
def test_words_by_which_numpy_would_ask_the_machines_clock_are_refused(use):
    imported = "try:\n    import numpy as np\nexcept ImportError:\n    np = None"
    (fault,) = check(f"{imported}\nreturn str({use})", importable=STANDARD | {"numpy"})
    assert fault.startswith("line 5: ")
    assert "the machine's clock; write numpy.datetime64(datetime.now())" in fault


@promise("programs:numpy-now")
@pytest.mark.parametrize(
    "use",
    [
        "np.array(['now', 'today'])",
        "np.datetime64('2024-01-01')",
        "np.datetime64(datetime.now(), 's')",
        "np.array([1], dtype='int64')",
        "np.array(['now'], np.dtype('U3'))",
        "pd.Timestamp('now')",
        "text.datetime64('now')",
    ],
)
def test_no_other_use_of_such_words_is_refused(use):
    source = f"import numpy as np, pandas as pd\nfrom datetime import datetime\ntext = np.array\nreturn str({use})"
    assert check(source, importable=STANDARD | {"numpy", "pandas"}) == []


@promise("programs:checked")
@pytest.mark.parametrize(
    ("source", "faults"),
    [
        ("x = (", ["line 1: '(' was never closed"]),
        ("x = 1\nreturn from", ["line 2: invalid syntax"]),
        ("def f():\n    await mail.search(query='x')", ["line 2: 'await' outside async function"]),
        ("yield 1", ["line 1: 'yield' outside function"]),
        ("async def main():\n    yield 1", ["line 1: main must return its result, not yield it"]),
        (
            "import subprocess\nimport requests.auth\nimport jsn",
            [
                "line 1: cannot import subprocess: it is left out of the sandbox (no other processes)",
                "line 2: cannot import requests.auth: it is not in the sandbox",
                "line 3: cannot import jsn: it is not in the sandbox; did you mean json?",
            ],
        ),
        ("from . import x", ["line 1: a program is one file, nothing can be imported relative to it"]),
        (
            "try:\n    import requests\n    requests.get('x')\nexcept Exception:\n    pass",
            ["line 2: cannot import requests: it is not in the sandbox"],
        ),
        ("\nawait mail.serch(query='x')", ["line 2: there is no mail.serch; did you mean search?"]),
        ("await mail.zzz()", ["line 1: there is no mail.zzz; there is: search, send_email"]),
        ("f = mail.list", ["line 1: there is no mail.list; there is: search, send_email"]),
        ("await mail.search.all()", ["line 1: mail.search is a function and has no all"]),
        ("await gmail.search(query='x')", ["line 1: gmail is not defined; did you mean mail?"]),
        ("mail(query='x')", ["line 1: mail is a provider and cannot be called itself; there is: search, send_email"]),
        (
            "await mail.search(qury='x')",
            [
                "line 1: mail.search has no parameter qury; did you mean query?",
                "line 1: mail.search needs query",
            ],
        ),
        ("await mail.send_email(body='x')", ["line 1: mail.send_email needs to, subject"]),
        ("await crm.update(more=1)", ["line 1: crm.update needs key"]),
        ("await mail.search('x')", ["line 1: mail.search takes keywords only; write mail.search(query=...)"]),
        ("await mail.search(*['x'])", ["line 1: mail.search takes keywords only; write mail.search(query=...)"]),
        ("await time.now(1)", ["line 1: time.now takes keywords only; write time.now()"]),
        (
            "mail.search(query='x')",
            ["line 1: mail.search(...) is not awaited; write await mail.search(...)"],
        ),
        (
            "a = mail.search(query='x')['a']\nb = mail.search(query='x').get(1)\nfor c in mail.search(query='x'): pass",
            [f"line {n}: mail.search(...) is not awaited; write await mail.search(...)" for n in (1, 2, 3)],
        ),
        ("async def one():\n    pass\none()", ["line 3: one(...) is not awaited; write await one(...)"]),
        (
            "import time\nawait time.now()",
            ["line 2: time is the module time here; write: from sandbox_py.servers import time as time_tools"],
        ),
        ("from sandbox_py.servers import mial", ["line 1: there is no provider mial; did you mean mail?"]),
        (
            "from sandbox_py import servers\nservers.web.get()",
            ["line 2: there is no provider web; there is: mail, crm, time"],
        ),
        ("from sandbox_py.servers.mail import serch", ["line 1: there is no mail.serch; did you mean search?"]),
        (
            "from sandbox_py.servers.mail.search import search",
            ["line 1: name what you import: from sandbox_py.servers.mail import search"],
        ),
        (
            "from sandbox_py.servers.mail import *",
            ["line 1: name what you import: from sandbox_py.servers.mail import ...; there is: search, send_email"],
        ),
        (
            "from sandbox_py.client import post",
            ["line 1: sandbox_py.client has no post; there is: OutcomeSettled, ToolError, UNSET, call, result"],
        ),
        ("import sandbox_py.tools", ["line 1: there is no module sandbox_py.tools; import sandbox_py.servers"]),
        (
            "from crm import update\nimport crm as c",
            [
                f"line {line}: cannot import crm: it is there without an import; "
                "for another name write: from sandbox_py.servers import crm as ..."
                for line in (1, 2)
            ],
        ),
        ("x = 1\nreturn total + x", ["line 2: total is not defined"]),
    ],
)
def test_each_fault_is_one_line_that_names_the_line_and_the_way_out(source, faults):
    assert check(source) == faults


@promise("programs:checked")
def test_at_most_ten_faults_are_named_in_the_order_of_lines():
    source = "\n".join(f"await mail.tool_{number}()" for number in range(30, 60))
    faults = check(source)
    assert len(faults) == MOST_FAULTS
    assert [fault.partition(":")[0] for fault in faults] == [f"line {line}" for line in range(1, 11)]


@promise("programs:check-total")
@pytest.mark.parametrize(
    "source",
    [
        "-" * 60_000 + "1",
        "1" + "+1" * 30_000,
        "a" + "()" * 30_000,
        "x = " + "[" * 30_000,
        "lambda:" * 9000 + "1",
        "import a" + ".a" * 30_000,
        "a" + " . a" * 10_000,
        "x = 1\0",
        "'\udc80'",
        "9" * 60_000,
        "x" * 1_000_000,
        "\n" * 70_000,
        "".join(" " * depth + "if 1:\n" for depth in range(120)),
        "@" * 60_000,
    ],
)
def test_a_program_that_breaks_the_parser_is_a_clear_fault(source):
    (fault,) = check(source)
    assert len(fault) < 320


@promise("programs:check-total")
def test_a_chain_of_branches_as_long_as_a_program_may_be_is_compiled_or_a_clear_fault():
    faults = check("if 1:\n pass\n" + "elif 1:\n pass\n" * 4000)
    # Python 3.13 compiles it, older versions say that it is nested too deeply.
    assert [len(fault) < 320 for fault in faults] in ([], [True])


@promise("programs:fits")
@pytest.mark.parametrize("source", ["return 1 is 1", "return '\\d'", "return () < (1, )\nassert (1, 'x')", "1()"])
def test_warnings_about_a_program_reach_nobody(source, capfd):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert check(source) == []
    assert seen == []
    assert capfd.readouterr() == ("", "")


PARTS = st.sampled_from(
    [
        *(
            "mail",
            "crm",
            "search",
            "await ",
            "import ",
            "from ",
            "sandbox_py",
            ".servers",
            ".",
            "(",
            ")",
            "=",
            ",",
            "*",
            "**",
        ),
        *(
            "async def ",
            "main",
            "x",
            ":",
            "\n",
            "\n    ",
            "    ",
            "return ",
            "yield ",
            "class ",
            "for ",
            " in ",
            "[",
            "]",
            "{",
            "}",
        ),
        *(
            "try:",
            "except ",
            "global x",
            "nonlocal x",
            "lambda ",
            "'",
            '"""',
            "\\",
            "f'{",
            "match x:",
            "case _",
            ":=",
            "1",
            "\0",
            "#",
        ),
    ]
)


@promise("programs:check-total")
@pytest.mark.thorough
@settings(max_examples=sized(400, 100), deadline=None)
@given(source=st.text() | st.lists(PARTS, max_size=30).map("".join))
@example(source="global mail\nmail.search(1)")
@example(source="nonlocal x")
@example(source="from sandbox_py.servers.mail import search\nsearch()()")
def test_whatever_the_source_is_the_check_answers_in_short_lines(source):
    faults = check(source)
    assert len(faults) <= MOST_FAULTS
    assert all("\n" not in fault and len(fault) < 600 for fault in faults)


@promise("programs:fits")
def test_ordinary_code_of_the_standard_library_is_not_faulted():
    library = Path(inspect.__file__).parent
    names = "argparse ast base64 calendar cmd csv dataclasses difflib enum fractions functools graphlib json/decoder"
    names += " random shlex statistics string textwrap tokenize traceback uuid zipfile"
    faults = {}
    for name in names.split():
        path = library / f"{name}.py"
        source = path.read_text(encoding="utf-8") if path.exists() else ""
        found = check(source, frozenset(sys.stdlib_module_names)) if len(source) < 60_000 else []
        faults |= {name: found} if found and "main is called without" not in found[0] else {}
    assert faults == {}


@promise("programs:fits")
def test_what_the_collector_does_during_the_parsing_is_no_fault_of_the_program(monkeypatch):
    faults = [SystemError("AST constructor recursion depth mismatch")]

    def parsing(source):
        if faults:
            raise faults.pop()
        return prepare(source)

    monkeypatch.setattr(checking, "prepare", parsing)
    assert check_program("return 1", functions={}, importable=frozenset()) == []


@promise("plans:nothing-runs")
@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("async def work():\n    return 1", "line 1: nothing runs work: there is no main or solve"),
        ("import json\nN = 3\n\ndef a():\n    pass\n\nasync def b():\n    pass", "line 7: nothing runs b"),
        ("x = 1\nasync def main(count):\n    return count", "line 2: nothing runs main: it cannot be called without"),
        ("async def work():\n    return 1\n\nreturn await work()", None),
        ("def work():\n    return 1\n\nprint(work())", None),
        ("def helper(n):\n    return n\n\ndef solve():\n    return helper(1)", None),
        ("async def main(count):\n    return count\n\nreturn await main(3)", None),
        ("class A:\n    def __init__(self):\n        pass", None),
    ],
)
def test_a_program_of_which_nothing_would_run_is_refused_with_its_line(source, fault):
    assert [said[: len(fault or "")] for said in check(source)] == ([] if fault is None else [fault])


@promise("plans:nothing-runs")
@pytest.mark.parametrize(
    ("loop", "ends"),
    [
        ("while True:\n    pass", False),
        ("while 1:\n    n += 1\n    if n > 3:\n        continue", False),
        ("while True:\n    while True:\n        break", True),
        ("while True:\n    n += 1\n    if n > 3:\n        break", True),
        ("while True:\n    return n", True),
        ("while True:\n    await mail.search(query='x')", True),
        ("while True:\n    n = next(found)", True),
        ("while True:\n    n = rows[n]", True),
        ("while True:\n    n /= 2", True),
        ("while n:\n    pass", True),
        ("while 0:\n    pass", True),
    ],
)
def test_a_loop_that_cannot_end_is_refused_and_one_that_may_is_not(loop, ends):
    faults = check(f"n, rows = 0, []\nfound = iter(rows)\n{loop}")

    assert [fault[: len("line 3: this loop never ends")] for fault in faults] == (
        [] if ends else ["line 3: this loop never ends"]
    )


@promise("plans:by-name-door")
@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("return await mcp.call_tool('mail.search', {'query': 'x'})", None),
        ("return await mcp.call_tool('mail__search', {'query': 'x'})", None),
        ("return await mcp.call_tool('send_email', {})", None),
        ("name = 'mail.serch'\nreturn await mcp.call_tool(name, {})", None),
        ("mcp = {}\nreturn mcp.call_tool('x')", None),
        (
            "return await mcp.call_tool('mail.serch', {})",
            "line 1: there is no tool mail.serch; did you mean mail.search?",
        ),
        ("return await mcp.call_tool('now', {})", "line 1: there is no tool now"),
        ("x = 1\nmcp.call_tool('mail.search', {})", "line 2: mcp.call_tool(...) is not awaited"),
        ("return await mcp.list_tools()", "line 1: mcp has only call_tool"),
    ],
)
def test_calls_by_name_are_checked_where_the_name_is_written(source, fault):
    tools = ["mail.search", "mail.send_email", "time.now", "clock.now"]
    faults = check_program(source, functions=FUNCTIONS, importable=STANDARD, tools=tools)

    assert [said[: len(fault or "")] for said in faults] == ([] if fault is None else [fault])


@promise("programs:blocked")
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import subprocess", ["line 1: uses subprocess"]),
        ("x = 1\nfrom subprocess import run as go", ["line 2: uses subprocess"]),
        ("try:\n    import subprocess\nexcept ImportError:\n    pass", ["line 2: uses subprocess"]),
        ("import os\nos.system('x')", ["line 2: uses os.system"]),
        ("import os as o\nf = o.system", ["line 2: uses os.system"]),
        ("from os import system", ["line 1: uses os.system"]),
        ("from os import *", ["line 1: uses os.system"]),
        ("import builtins\nbuiltins.eval('1')", ["line 2: uses eval"]),
        ("try:\n    eval('1')\nexcept Exception:\n    exec('2')", ["line 2: uses eval", "line 4: uses exec"]),
        ("run = exec", ["line 1: uses exec"]),
        ("import os\nos.getcwd()", []),
        ("def eval(x):\n    return x\neval(1)", []),
        ("await shell.exec(command='ls')", []),
        ("print('eval')", []),
        ("def (", []),
    ],
)
def test_what_an_operator_warns_of_is_found_with_its_line(source, said):
    assert blocked_uses(source, Settings.model_fields["blocked_modules"].default) == said
