"""Carry plans through their lives: check, propose, carry out, and keep what became of them.

May import: backstay, workflows.asked_calls, workflows.asking, workflows.changing, workflows.consent,
workflows.model_calls, workflows.reconcile, workflows.rehearsals, workflows.rollback, workflows.run_context,
workflows.tool_calls, workflows.work.
"""
