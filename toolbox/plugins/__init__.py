"""Programs with an argparse command line as tools: found, described by their own parser, and run."""
