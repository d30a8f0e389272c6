"""Run all parts on one machine: Temporal, a worker, the page.

May import: backstay, gateways.links, gateways.served, gateways.terminal, opening, system.
"""
