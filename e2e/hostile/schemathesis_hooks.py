import os
from collections import Counter
from zlib import crc32

import schemathesis

# Lines of JSON, which Schemathesis cannot write, are text to it.
schemathesis.serializer.alias("application/x-ndjson", "text/plain")

seen = Counter()


def is_kept(case):
    """
    A short run sends two of the five or six wrong types of each field and parameter, others for others, and one of the six methods that a
    path does not have: they are half of what the phase "coverage" makes up.
    """
    data = getattr(case.meta.phase, "data", None) if case.meta else None
    scenario = getattr(getattr(data, "scenario", None), "value", None)
    if scenario == "incorrect_type":
        place = f"{case.operation.label} {data.parameter_location} {data.parameter} {data.location}"
    elif scenario == "unspecified_http_method":
        place = case.operation.path
    else:
        return True
    number = seen[place]
    seen[place] += 1
    chosen = crc32(place.encode()) % 4
    return number == chosen if scenario == "unspecified_http_method" else number in (0, 1 + chosen)


if not os.environ.get("HERALD_HOSTILE_FULL"):

    @schemathesis.hook
    def filter_case(context, case):
        return is_kept(case)
