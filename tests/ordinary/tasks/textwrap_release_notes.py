# result: {"lines": ["* The new release brings a faster", "  parser, a friendlier command line and", "  many small repairs. Upgrading is", "  recommended for everyone who uses the", "  streaming interface."], "short": "The new release brings a faster parser, a...", "quoted": "> a\n\n> b\n"}
# output: "* The new release brings a faster\n  parser, a friendlier command line and\n  many small repairs. Upgrading is\n  recommended for everyone who uses the\n  streaming interface.\n"
import textwrap

notes = """
    The new release brings a faster parser, a friendlier command line and many small repairs.
    Upgrading is recommended for everyone who uses the streaming interface.
"""
clean = textwrap.dedent(notes).strip()
wrapped = textwrap.fill(clean, width=40, initial_indent="* ", subsequent_indent="  ")
print(wrapped)
return {
    "lines": wrapped.splitlines(),
    "short": textwrap.shorten(clean, width=50, placeholder="..."),
    "quoted": textwrap.indent("a\n\nb\n", "> "),
}
