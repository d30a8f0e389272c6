"""What people are asked, what they answer, who may answer, and how they prove who they are.

`workflows.approvals` asks, waits for verdicts, and lets requests expire.
"""
