import a_module_that_is_nowhere  # noqa: F401 - it is missing on purpose
