"""Read toolbox.json: servers, declarations of tools, templates, variables."""
