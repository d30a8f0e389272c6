"""Ask the person at the terminal: to decide a request, to change arguments, to fill in a form.

May import: backstay, gateways.terminal, people, toolbox.
"""
