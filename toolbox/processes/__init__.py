"""Start the processes of command-line tools and stdio servers, bounded and confined."""
