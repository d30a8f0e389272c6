"""Find secrets in payloads, texts and logs, and replace each by a handle or a mask.

May import: backstay.canonical, backstay.data_files, backstay.frozen, backstay.shown, backstay.strict_json.
"""
