"""What a person wants and what becomes of it: task, plan, decisions, events, status and result."""
