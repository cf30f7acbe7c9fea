import { once } from "node:events";
import type { RequestListener } from "node:http";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { allowLongUpload, startHttp } from "./start-http.ts";

const local = { host: "127.0.0.1", port: 0 };

/** An app whose responses wait until the test releases them. */
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

test("a port that is taken is an error that names it and its variable", async () => {
  const { app } = gated();
  const server = await startHttp(app, local);
  const again = (variable?: string) => startHttp(app, { ...local, port: server.port, ...(variable && { variable }) });
  const said = `port ${server.port} of 127.0.0.1 is taken by another program: set`;
  await expect(again()).rejects.toThrow(`${said} HERALD_PORT to another one (listen EADDRINUSE`);
  await expect(again("HERALD_GATEWAY_ADMIN_PORT")).rejects.toThrow(`${said} HERALD_GATEWAY_ADMIN_PORT to another one`);
  await server.stop(100);
});

test("a later request on the connection of an upload may not be slow", async () => {
  const timeouts = { headersMs: 100, requestMs: 200, responseMs: 1_000, restMs: 1_000, keepAliveMs: 60_000 };
  const app: RequestListener = (request, response) => {
    const end = request.url === "/upload" ? allowLongUpload(request) : undefined;
    request.resume().on("end", () => {
      end?.();
      response.end("stored");
    });
  };
  const server = await startHttp(app, { ...local, timeouts });
  const socket = connect(server.port, "127.0.0.1");
  const post = (path: string) => `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n`;
  socket.write(`${post("/upload")}abc`);
  await once(socket, "data");
  socket.write(`${post("/other")}a`);
  if (!socket.closed) await once(socket, "close");
  await server.stop(100);
});

test.each(["keep-alive", "close"])(
  "a client that never ends its request reads the early response, with `connection: %s`, and delays no stop",
  async (connection) => {
    const long = 60_000;
    const timeouts = { headersMs: long, requestMs: long, responseMs: long, restMs: 1_000, keepAliveMs: long };
    const app: RequestListener = (request, response) => {
      allowLongUpload(request);
      // As a route that stops reading in the middle.
      void request[Symbol.asyncIterator]()
        .next()
        .then(() => response.writeHead(409, { connection }).end("refused"));
    };
    const server = await startHttp(app, { ...local, timeouts });
    const socket = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
    let answer = "";
    socket.on("error", () => {});
    const piece = Buffer.from(`10000\r\n${"a".repeat(65_536)}\r\n`);
    const send = () => {
      while (!socket.destroyed && socket.write(piece));
      // Many clients read late: far more is sent than all buffers hold.
      if (socket.bytesWritten > 2 ** 24 && socket.listenerCount("data") === 0)
        socket.on("data", (chunk) => {
          answer += chunk;
        });
    };
    socket.on("drain", send);
    socket.write("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    send();
    await expect.poll(() => answer).toMatch(/^HTTP\/1\.1 409 .*refused/s);
    await server.stop(600_000);
    await expect.poll(() => socket.closed).toBe(true);
  },
);

test("a client that ends its request after the early response, but not its connection, is disconnected", async () => {
  const timeouts = { headersMs: 60_000, requestMs: 60_000, responseMs: 60_000, restMs: 100, keepAliveMs: 60_000 };
  const server = await startHttp((_, response) => response.writeHead(409, { connection: "close" }).end("refused"), {
    ...local,
    timeouts,
  });
  const socket = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {});
  socket.write("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  await once(socket, "data");
  socket.write("0\r\n\r\n");
  await expect.poll(() => server.connections()).toBe(0);
  socket.destroy();
  await server.stop(100);
});

test("slow headers and slow bodies are cut off with a 408", async () => {
  const server = await startHttp((request, response) => request.resume().on("end", () => response.end()), {
    ...local,
    timeouts: { headersMs: 100, requestMs: 200, responseMs: 1_000, restMs: 1_000, keepAliveMs: 1_000 },
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

test("disconnects a client that does not read its response", async () => {
  const large = Buffer.alloc(64 * 2 ** 20);
  let closed = 0;
  const server = await startHttp(
    (_request, response) => {
      response.on("close", () => closed++);
      response.end(large);
    },
    { ...local, timeouts: { headersMs: 1_000, requestMs: 1_000, responseMs: 200, restMs: 1_000, keepAliveMs: 1_000 } },
  );
  const reader = connect(server.port, "127.0.0.1");
  reader.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await once(reader, "readable");
  await expect.poll(() => closed).toBe(1);
  await expect.poll(server.connections).toBe(0);
  reader.destroy();
  await server.stop(100);
});

/** Connects, sends the bytes, and returns everything received until the end. */
const ask = async (port: number, bytes: string, localAddress = "127.0.0.1"): Promise<string> => {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  let answer = "";
  socket.on("data", (chunk) => {
    answer += chunk;
  });
  socket.on("error", () => {});
  socket.write(bytes);
  await once(socket, "close");
  return answer;
};
const get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

test.each([
  [{ max: 2 }, /^HTTP\/1\.1 503 .*retry-after: 1\r\n.*"\/docs\/errors#overloaded"/s],
  [{ max: 9, maxPerAddress: 2 }, /^HTTP\/1\.1 429 .*retry-after: 1\r\n.*"\/docs\/errors#rate-limited"/s],
])("past %j connections with a request each, another is told to come back", async (limit, answer) => {
  const { app, first, release } = gated();
  const server = await startHttp(app, { ...local, limit });
  const waiting = [ask(server.port, get), ask(server.port, get)];
  await first;
  await expect.poll(server.connections).toBe(2);
  expect(await ask(server.port, get)).toMatch(answer);
  expect(server.connections()).toBe(2);
  const stopped = server.stop(10_000);
  await expect
    .poll(() => {
      release();
      return server.connections();
    })
    .toBe(0);
  for (const one of await Promise.all(waiting)) expect(one).toMatch(/^HTTP\/1\.1 200 /);
  await stopped;
});

test("however many addresses take what they may, the next one finds a connection", async () => {
  const { app, release } = gated();
  const server = await startHttp(app, { ...local, limit: { max: 8, maxPerAddress: 4 } });
  const answers: Promise<string>[] = [];
  for (const [from, count, open] of [
    ["127.0.0.2", 4, 4],
    ["127.0.0.3", 4, 7],
    ["127.0.0.4", 1, 8],
  ] as const) {
    for (let n = 0; n < count; n++) answers.push(ask(server.port, get, from));
    await expect.poll(server.connections).toBe(open);
  }
  const stopped = server.stop(10_000);
  await expect
    .poll(() => {
      release();
      return server.connections();
    })
    .toBe(0);
  const statuses = (await Promise.all(answers)).map((answer) => answer.slice(9, 12));
  expect(statuses.filter((status) => status === "503")).toHaveLength(1);
  expect(statuses.at(-1)).toBe("200");
  await stopped;
});

test("an idle connection makes room for a new one", async () => {
  const server = await startHttp((_request, response) => response.end("done"), { ...local, limit: { max: 1 } });
  for (let next = 0; next < 3; next++) {
    const socket = connect(server.port, "127.0.0.1");
    socket.write(get);
    const [answer] = await once(socket, "data");
    expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /);
    expect(server.connections()).toBe(1);
  }
  await server.stop(100);
});
