import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { startHttp } from "./start-http.ts";

const local = { host: "127.0.0.1", port: 0 };

/** An app whose answers wait for a word. */
const gated = () => {
  const waiting: (() => void)[] = [];
  let arrived: () => void = () => {};
  const first = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  return {
    first,
    release: () => {
      for (const answer of waiting.splice(0)) answer();
    },
    app: (_request: unknown, response: { end: (text: string) => void }) => {
      waiting.push(() => response.end("done"));
      arrived();
    },
  };
};

test("a stop finishes what is in flight, takes nothing new, and ends idle connections", async () => {
  const { app, first, release } = gated();
  const server = await startHttp(app, local);
  const idle = connect(server.port, "127.0.0.1");
  await once(idle, "connect");
  const answer = fetch(server.address).then((response) => response.text());
  await first;
  const stopped = server.stop(10_000);
  await expect(fetch(server.address)).rejects.toThrow();
  release();
  expect(await answer).toBe("done");
  await stopped;
  idle.resume();
  if (!idle.closed) await once(idle, "close");
});

test("past the deadline a stop cuts off what is left", async () => {
  const { app, first } = gated();
  const server = await startHttp(app, local);
  const answer = fetch(server.address).then(
    () => "answered",
    () => "cut off",
  );
  await first;
  await server.stop(20);
  expect(await answer).toBe("cut off");
});

test("a port that is taken is an error", async () => {
  const { app } = gated();
  const server = await startHttp(app, local);
  await expect(startHttp(app, { ...local, port: server.port })).rejects.toThrow(/EADDRINUSE/);
  await server.stop(100);
});

test("slow headers and slow bodies are cut off with a 408", async () => {
  const server = await startHttp((request, response) => request.resume().on("end", () => response.end()), {
    ...local,
    timeouts: { headersMs: 100, requestMs: 200, keepAliveMs: 1_000 },
  });
  for (const begun of ["GET / HTTP/1.1\r\nHost: a\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc"]) {
    const socket = connect(server.port, "127.0.0.1");
    let answer = "";
    socket.on("data", (chunk) => {
      answer += chunk;
    });
    socket.write(begun);
    await once(socket, "close");
    expect(answer).toMatch(/^HTTP\/1\.1 408/);
  }
  await server.stop(100);
});
