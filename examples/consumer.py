"""Reads Herald's events with nats-py and NATS credentials alone. Copy it: it does not depend on Herald's packages.

    pip install nats-py==2.16.0
    npm run -s consumer -- add warehouse --project prj_... --event io.herald.notification.opened.v1 > warehouse.env
    set -a; . ./warehouse.env; python3 examples/consumer.py

- It resumes where it stopped, because the durable stores which events were acknowledged. Several instances share the work.
- Events of one type that happen within the same 50 ms share a message, up to 100 of them: acknowledge it after the last one.
- An event may come twice (after a crash between handling and acknowledgement), always with the same id: make handling
  idempotent. Here the ids are lines of the file SEEN; in production make them a unique key of your table.
- It requests MAX_MESSAGES messages after handling the previous ones: if handling is slow, the rest waits on the server.
- Types and fields that later versions of Herald add are kept unchanged, so you can use stored events later.
"""

import asyncio
import json
import os
import signal
import sys

import nats

env = os.environ.get
URL = env("NATS_URL", "nats://127.0.0.1:4222")
STREAM = env("NATS_STREAM", "PUSH_EVENTS")
DURABLE = env("NATS_DURABLE", "consumers-opens")
SEEN = env("SEEN", "")
MAX_MESSAGES = int(env("MAX_MESSAGES", "100"))
SLOWLY_MS = int(env("SLOWLY_MS", "0"))


def events_of(message):
    """Parses CloudEvents. One alone is in binary mode: attributes in the headers, data in the body, kept even if it is not
    JSON. Several are a JSON batch: an array of objects with attributes and data."""
    headers = message.headers or {}
    text = message.data.decode("utf-8", "replace")
    if headers.get("content-type") == "application/cloudevents-batch+json":
        return json.loads(text)
    try:
        data = json.loads(text)
    except ValueError:
        data = text
    found = {
        "id": headers.get("ce-id", f"{STREAM}/{message.metadata.sequence.stream}"),
        "type": headers.get("ce-type", message.subject),
        "time": headers.get("ce-time"),
        "source": headers.get("ce-source"),
        "data": data,
    }
    return [{name: value for name, value in found.items() if value is not None}]


def show(what, event):
    print(json.dumps({"what": what, **event}), flush=True)


# Handlers of the types that you know. Events may have fields that you do not know.
HANDLERS = {"io.herald.notification.opened.v1": lambda event: show("opened", event)}


async def main():
    seen = set()
    if SEEN and os.path.exists(SEEN):
        with open(SEEN, encoding="utf-8") as file:
            seen.update(file.read().split("\n"))

    connection = await nats.connect(
        URL,
        user=env("NATS_USER", "analytics"),
        password=env("NATS_PASSWORD", ""),
        # This NATS user may subscribe only to its own inbox.
        inbox_prefix=env("NATS_INBOX_PREFIX", "_INBOX_analytics").encode(),
        max_reconnect_attempts=-1,
    )
    stopping = asyncio.Event()
    for one in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(one, stopping.set)

    events = await connection.jetstream().pull_subscribe_bind(durable=DURABLE, stream=STREAM)
    print(f"listening to {DURABLE} on {URL}", file=sys.stderr, flush=True)
    while not stopping.is_set():
        try:
            messages = await events.fetch(MAX_MESSAGES, timeout=5)
        except asyncio.TimeoutError:  # no message; also catches nats-py's TimeoutError, a subclass
            continue
        for message in messages:
            for event in events_of(message):
                if event["id"] in seen:
                    continue
                HANDLERS.get(event["type"], lambda one: show("kept", one))(event)
                seen.add(event["id"])
                if SEEN:
                    with open(SEEN, "a", encoding="utf-8") as file:
                        file.write(event["id"] + "\n")
                if SLOWLY_MS:
                    await asyncio.sleep(SLOWLY_MS / 1000)
                # Restarts the ack wait of 30 s, because all events of a message may take longer.
                await message.in_progress()
            # Acknowledge only after handling: NATS redelivers unacknowledged messages.
            await message.ack()
    await connection.flush()  # the last acknowledgements
    await connection.close()


asyncio.run(main())
