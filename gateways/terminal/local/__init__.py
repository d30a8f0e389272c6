"""Run all parts on one machine: Temporal, a worker, the page.

May import: backstay, gateways.links, gateways.terminal, opening, system.
"""
