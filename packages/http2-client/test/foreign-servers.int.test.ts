import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { type AddressInfo, connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "@herald/provision";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import { createHttp2Transport } from "../src/http2-transport.ts";
import type { TransportOptions } from "../src/transport.ts";
import { localhostCertificate } from "./certificates.ts";
import { ids, kinds, push, sendAll } from "./fixture.ts";
import { type ForeignServer, foreignServers, type Site } from "./foreign-table.ts";
import { createCounter } from "./strict-server.ts";

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const folder = (): string => mkdtempSync(join(tmpdir(), "herald-foreign-"));
const remove = (dir: string) => rmSync(dir, { recursive: true, force: true });
const programs = folder();
afterAll(() => remove(programs));

const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` };
const isMissing = ({ command }: ForeignServer): boolean =>
  spawnSync(command, ["--version"], { env }).error !== undefined;

const listen = async (server: Server): Promise<number> => {
  await once(server.listen(0, "127.0.0.1"), "listening");
  return (server.address() as AddressInfo).port;
};

const digest = (body: string | Buffer): string => createHash("sha256").update(body).digest("hex");

/** The upstream of a foreign server. It counts each body and answers with its digest, 10 KB of headers and a trailer. */
async function startUpstream() {
  const counter = createCounter();
  /** Holds requests until `size` of them have arrived. */
  const barrier = { size: 0, held: [] as (() => void)[] };
  const headers = Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`x-large-${at}`, `${at}`.repeat(1_000)]));
  const server = createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("error", () => {}); // the request was cut off, so it does not count
    request.on("end", () => {
      const body = Buffer.concat(chunks);
      counter.act(body.toString().split(" ", 1)[0] ?? "");
      barrier.held.push(() => {
        response.writeHead(200, { ...headers, trailer: "x-checksum" });
        response.write(digest(body) + ".".repeat(Number(request.headers["x-padding"] ?? 0)));
        response.addTrailers({ "x-checksum": "none" });
        response.end();
      });
      if (barrier.held.length >= barrier.size) for (const answer of barrier.held.splice(0)) answer();
    });
  });
  const port = await listen(server);
  ends.push(async () => {
    server.closeAllConnections();
    await once(server.close(), "close");
  });
  return { counter, barrier, port };
}

const isRunning = ({ exitCode, signalCode }: ChildProcess) => exitCode === null && signalCode === null;

async function startServer(server: ForeignServer, upstream: number) {
  const { certificate, privateKey } = await localhostCertificate();
  const dir = folder();
  ends.push(() => remove(dir));
  const file = (name: string, content: string) => {
    writeFileSync(join(dir, name), content);
    return join(dir, name);
  };
  const inner = foreignServers.find(({ name }) => name === server.before);
  const site: Site = {
    dir,
    port: await freePort(),
    upstream: inner ? (await startServer(inner, upstream)).port : upstream,
    certificate: file("certificate.pem", certificate),
    privateKey: file("key.pem", privateKey),
    both: file("both.pem", `${certificate}\n${privateKey}`),
  };
  const program = join(programs, server.command);
  // Without cgo, as the local stack compiles FerretDB: Go then has most packages compiled already.
  if (server.build)
    execFileSync(server.command, server.build(program), { env: { ...env, CGO_ENABLED: "0" }, stdio: "pipe" });
  const args = server.start(file("config", server.config(site)), site);
  const child = spawn(server.build ? program : server.command, args, {
    cwd: dir,
    env,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (chunk) => {
    said += chunk;
  });
  const ended = once(child, "exit");
  ends.push(async () => {
    if (isRunning(child)) child.kill("SIGTERM");
    const deadline = setTimeout(() => child.kill("SIGKILL"), 5_000);
    await ended;
    clearTimeout(deadline);
  });
  const connectable = async () => {
    if (!isRunning(child)) throw new Error(`${server.name} ended: ${said}`);
    const socket = connectTcp(site.port, "127.0.0.1");
    await once(socket, "connect").finally(() => socket.destroy());
  };
  await vi.waitFor(connectable, { timeout: 20_000, interval: 50 });
  return {
    origin: `https://localhost:${site.port}`,
    port: site.port,
    ca: certificate,
    stop: () => child.kill(server.stop),
  };
}

function connect({ origin, ca }: { origin: string; ca: string }, options: Partial<TransportOptions> = {}) {
  const opened = { connections: 0 };
  const transport = createHttp2Transport({
    origin,
    ca,
    lookup(_hostname, { all }, callback) {
      opened.connections++;
      if (all) callback(null, [{ address: "127.0.0.1", family: 4 }]);
      else callback(null, "127.0.0.1", 4);
    },
    ...options,
  });
  ends.push(transport.close);
  return { ...transport, opened };
}

/** Uses `node:http2`, because this client ignores trailers. */
async function hasTrailers({ port, ca }: { port: number; ca: string }): Promise<boolean> {
  const session = connectHttp2(`https://127.0.0.1:${port}`, { ca });
  let trailers = false;
  const stream = session.request({ ":method": "POST", ":path": "/", te: "trailers" }).on("trailers", () => {
    trailers = true;
  });
  stream.resume().end("trailers");
  await once(stream, "close").finally(() => session.destroy());
  return trailers;
}

/** Puts third-party HTTP/2 servers between the client and a counting server: no request is lost or arrives twice. */
describe.each(foreignServers)("$name", { timeout: 120_000 }, (server) => {
  const missing = [server, ...foreignServers.filter(({ name }) => name === server.before)].filter(isMissing);
  const check = (title: string, run: () => Promise<void>) =>
    test(title, async ({ skip }) => {
      skip(
        missing.length > 0,
        missing.map(({ command, debian }) => `${command} is not here (Debian: ${debian})`).join(),
      );
      await run();
    });

  check("2,000 requests, over connections that go away", async () => {
    const { counter, port } = await startUpstream();
    const transport = connect(await startServer(server, port));
    const bodies = ids(2_000);
    const answers = await sendAll(transport, bodies);
    expect(answers.map((answer) => (answer.kind === "answered" ? `${answer.status} ${answer.body}` : answer))).toEqual(
      bodies.map((body) => `200 ${digest(body)}`),
    );
    expect(counter.total).toBe(2_000);
    expect(counter.repeated).toEqual([]);
    const { goAwayAfter = Number.POSITIVE_INFINITY } = server;
    expect(transport.opened.connections).toBeGreaterThanOrEqual(2_000 / goAwayAfter);
  });

  check("bodies of 300 KB, answers of 60 KB with 10 KB of headers, and trailers", async () => {
    const { counter, port } = await startUpstream();
    const site = await startServer(server, port);
    const transport = connect(site);
    const bodies = ids(100).map((id) => `${id} ${"x".repeat(300_000)}`);
    const headers = { "x-padding": "60000" };
    const answers = await Promise.all(bodies.map((body) => transport.send({ ...push("a"), headers, body })));
    for (const [at, body] of bodies.entries())
      expect(answers[at]).toMatchObject({
        kind: "answered",
        status: 200,
        body: digest(body) + ".".repeat(60_000),
        headers: { "x-large-9": "9".repeat(1_000) },
      });
    expect(counter.total).toBe(100);
    expect(counter.repeated).toEqual([]);
    if (server.trailers) expect(await hasTrailers(site)).toBe(true);
  });

  check(`${server.streams} requests of one connection at once`, async () => {
    const { counter, barrier, port } = await startUpstream();
    const transport = connect(await startServer(server, port), { connections: 1 });
    const count = server.streams * 5;
    barrier.size = server.streams;
    expect(kinds(await sendAll(transport, ids(count)))).toEqual({ answered: count });
    expect(counter.total).toBe(count);
    expect(counter.repeated).toEqual([]);
    expect(transport.opened.connections).toBe(1);
  });

  check("a stop in the middle: what is answered arrived once, what is unprocessed did not", async () => {
    const { counter, port } = await startUpstream();
    const { stop, ...site } = await startServer(server, port);
    const bodies = ids(3_000);
    const sent = sendAll(connect(site), bodies);
    await vi.waitFor(() => expect(counter.total).toBeGreaterThan(500), { timeout: 60_000, interval: 1 });
    stop();
    const answers = await sent;
    const wrong = answers.filter((answer, at) => {
      const times = counter.times(bodies[at] ?? "");
      if (answer.kind === "unprocessed") return times > 0;
      // A proxy answers 5xx if it could not forward the request, and also if it forwarded it but got no answer.
      return answer.kind === "answered" && answer.status < 500 ? times !== 1 : times > 1;
    });
    expect(wrong).toEqual([]);
    // Those that were under way at the stop may have no answer.
    expect(kinds(answers).answered).toBeGreaterThan(250);
  });
});
