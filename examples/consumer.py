"""Reads Herald's events with nats-py and nothing but NATS credentials. Copy it: it depends on nothing of Herald's.

    pip install nats-py==2.16.0
    npm run -s consumer -- add warehouse --project prj_... --event io.herald.notification.opened.v1 > warehouse.env
    set -a; . ./warehouse.env; python3 examples/consumer.py

- It resumes where it stopped, because the durable remembers what was acknowledged; run several and they share the work.
- An event may come twice (a crash between handling and acknowledgement), always with the same ce-id: handle it so that a
  repeat changes nothing. Here the ids are lines of the file SEEN, in earnest they are a unique key of your table.
- It asks for MAX_MESSAGES events when it has handled the last: when handling is slow, the rest waits on the server.
- A type or a field that a later version of Herald adds is kept as it came: what is stored once can be understood later.
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


def event_of(message):
    """CloudEvents in binary mode: who and what in the headers, the rest in the body, kept even when it is not JSON."""
    headers = message.headers or {}
    text = message.data.decode("utf-8", "replace")
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
    return {name: value for name, value in found.items() if value is not None}


def show(what, event):
    print(json.dumps({"what": what, **event}), flush=True)


# What to do with the types that you know. Each may find fields that it does not know.
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
        # The user may listen to its own inbox alone.
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
        except asyncio.TimeoutError:  # nothing came; nats-py throws Python's own as well as its own, which is one of those
            continue
        for message in messages:
            event = event_of(message)
            if event["id"] not in seen:
                HANDLERS.get(event["type"], lambda one: show("kept", one))(event)
                seen.add(event["id"])
                if SEEN:
                    with open(SEEN, "a", encoding="utf-8") as file:
                        file.write(event["id"] + "\n")
            if SLOWLY_MS:
                await asyncio.sleep(SLOWLY_MS / 1000)
            # Only now: what was not acknowledged comes again.
            await message.ack()
    await connection.flush()  # the last acknowledgements
    await connection.close()


asyncio.run(main())
