"""Find secrets in payloads, texts and logs, and replace each with a handle or a mask.

`redactor` is the entry. `json_values` redacts JSON, `text` redacts a string; both find secrets by
`sensitive_names`, `assignments`, `tables`, `vendor_tokens` and `patterns`. `harmless` and `entropy` recognise what is
no secret.
"""
