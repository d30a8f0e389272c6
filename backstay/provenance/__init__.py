"""Say where the text of a call's arguments first appeared. Pure functions on plain data, on shown forms only.

May import: backstay.canonical, backstay.data_files, backstay.frozen, backstay.shown, backstay.stored_texts.
"""
