"""Actions that come with the engine; beside each module lie the shapes of servers it is known to fit."""
