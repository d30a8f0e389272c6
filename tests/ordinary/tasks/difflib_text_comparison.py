# result: {"diff": "--- old.txt\n+++ new.txt\n@@ -1,4 +1,5 @@\n one\n-two\n+2\n three\n four\n+five\n", "ratio": 0.6154, "close": ["apple", "ape"], "ndiff": ["- a\n", "+ b\n"]}
import difflib

old = "one\ntwo\nthree\nfour\n".splitlines(keepends=True)
new = "one\n2\nthree\nfour\nfive\n".splitlines(keepends=True)
diff = list(difflib.unified_diff(old, new, fromfile="old.txt", tofile="new.txt"))
ratio = difflib.SequenceMatcher(None, "kitten", "sitting").ratio()
return {
    "diff": "".join(diff),
    "ratio": round(ratio, 4),
    "close": difflib.get_close_matches("appel", ["ape", "apple", "peach", "puppy"]),
    "ndiff": [line for line in difflib.ndiff(["a\n"], ["b\n"])],
}
