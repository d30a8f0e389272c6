"""Run one program: what the jail's interpreter is started with."""

import sys

HERE = __file__.rpartition("/")[0]


def main() -> None:
    """Replace clocks and randomness before anything that reads them is imported; then serve."""
    for name in ("sandbox", "sandbox.guest", "sandbox.guest.programs"):
        package = type(sys)(name)
        package.__path__ = [HERE] if name.endswith(".programs") else []
        sys.modules[name] = package
    from sandbox.guest.programs.after_import import AfterImport  # noqa: PLC0415 - found through the packages made above
    from sandbox.guest.programs.clock import Clock  # noqa: PLC0415 - the same
    from sandbox.guest.programs.databases import Databases  # noqa: PLC0415 - the same
    from sandbox.guest.programs.file_times import FileTimes  # noqa: PLC0415 - the same
    from sandbox.guest.programs.seeded import Seeded  # noqa: PLC0415 - the same

    clock, seeded = Clock(), Seeded()
    clock.install()
    seeded.install()
    FileTimes(clock).install()
    changes = AfterImport(
        {
            "random": seeded.install_random,
            "uuid": seeded.install_uuid,
            "datetime": clock.install_datetime,
            "resource": clock.install_resource,
            "_sqlite3": Databases(clock, seeded).install,
        }
    )
    from sandbox.guest.programs.lean_asyncio import import_asyncio  # noqa: PLC0415 - reads the clock while it is imported

    import_asyncio()
    from sandbox.guest.programs.session import serve  # noqa: PLC0415 - the same

    serve(clock, seeded, changes)


if __name__ == "__main__":
    main()
