# result: ["low on paper"]
import logging
import sys


async def main():
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname)s:%(name)s:%(message)s", force=True)
    log = logging.getLogger("report")
    log.debug("not shown")
    log.info("processed %d rows", 12)
    try:
        {}["missing"]
    except KeyError:
        log.exception("lookup failed")
    records = []

    class Collector(logging.Handler):
        def emit(self, record):
            records.append(record.getMessage())

    log.addHandler(Collector())
    log.warning("low on %s", "paper")
    return records
