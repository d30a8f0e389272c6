"""Record what a workspace holds, compare two records, and restore one."""
