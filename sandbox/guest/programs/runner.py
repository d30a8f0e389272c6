"""Run one program: what the jail's interpreter is started with."""

import sys

HERE = __file__.rpartition("/")[0]


def main() -> None:
    """Replace clocks and randomness before anything that reads them is imported; then serve."""
    for name in ("sandbox", "sandbox.guest", "sandbox.guest.programs"):
        package = type(sys)(name)
        package.__path__ = [HERE] if name.endswith(".programs") else []
        sys.modules[name] = package
    from sandbox.guest.programs.clock import Clock, FileTimes  # noqa: PLC0415 - found through the packages made above
    from sandbox.guest.programs.imports import ModuleChanges, import_asyncio  # noqa: PLC0415 - the same
    from sandbox.guest.programs.machine import install_machine  # noqa: PLC0415 - the same
    from sandbox.guest.programs.randomness import SeededRandomness  # noqa: PLC0415 - the same
    from sandbox.guest.programs.sqlite_functions import SqliteFunctions  # noqa: PLC0415 - the same

    clock, randomness = Clock(), SeededRandomness()
    clock.install()
    randomness.install()
    install_machine()
    FileTimes(clock).install()
    changes = ModuleChanges(
        {
            "random": randomness.install_random,
            "uuid": randomness.install_uuid,
            "datetime": clock.install_datetime,
            "resource": clock.install_resource,
            "_sqlite3": SqliteFunctions(clock, randomness).install,
        }
    )
    import_asyncio()
    from sandbox.guest.programs.session import serve  # noqa: PLC0415 - it reads the clock while it is imported

    serve(clock, randomness, changes)


if __name__ == "__main__":
    main()
