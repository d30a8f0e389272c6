"""The file tools: what runs inside a jail to read and write one workspace. Nothing but the standard library."""
