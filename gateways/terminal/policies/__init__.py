"""The commands `policy test` and `policy try`: what a policy would say of cases, and of calls that were made.

May import: activities, backstay, gateways.terminal, opening.
"""
