"""Give a run a folder to work in: jails for files and commands, ownership, effects and undo."""
