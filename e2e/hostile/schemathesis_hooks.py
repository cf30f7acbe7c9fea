import schemathesis

# Lines of JSON, which Schemathesis cannot write, are text to it.
schemathesis.serializer.alias("application/x-ndjson", "text/plain")
