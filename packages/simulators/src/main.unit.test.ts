import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { connectApns } from "../test/apns-client.ts";

let folder: string;
let child: ChildProcess | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "herald-simulators-"));
});
afterEach(async () => {
  child?.kill("SIGKILL");
  await rm(folder, { recursive: true });
});

const run = (environment: Record<string, string>) => {
  const main = join(import.meta.dirname, "main.ts");
  const started = spawn(process.execPath, ["--conditions=@herald/source", main], {
    env: { ...process.env, ...environment },
  });
  child = started;
  return started;
};
const firstLine = async (stream: NodeJS.ReadableStream) => {
  let text = "";
  for await (const chunk of stream) {
    text += chunk;
    if (text.includes("\n")) break;
  }
  return text.slice(0, text.indexOf("\n"));
};

it("prints its addresses in one line, serves, and stops on SIGTERM", async () => {
  const started = run({ HERALD_SIMULATORS_IDENTITY_FILE: join(folder, "identity.json") });
  const exit = once(started, "exit");
  const state = JSON.parse(await firstLine(started.stdout));

  const client = await connectApns({ apns: { url: state.apns }, ca: state.ca });
  expect(await client.send()).toMatchObject({ status: 200 });
  const pushes = await fetch(`${state.control}/pushes`);
  expect(await pushes.json()).toMatchObject({ data: [{ provider: "apns", status: 200 }] });

  started.kill("SIGTERM");
  expect(await exit).toEqual([0, null]);
});

it("names the variable of a port that is taken", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address() as AddressInfo;
  const started = run({ HERALD_SIMULATORS_FCM_PORT: String(port) });
  expect(await firstLine(started.stderr)).toMatch(/EADDRINUSE.*: set HERALD_SIMULATORS_FCM_PORT to another port$/);
  taken.close();
});

it("names every wrong variable and exits", async () => {
  const started = run({ HERALD_SIMULATORS_APNS_PORT: "http", HERALD_SIMULATORS_RECORD: "some" });
  let text = "";
  started.stderr.on("data", (chunk) => {
    text += chunk;
  });
  expect(await once(started, "exit")).toEqual([1, null]);
  expect(text).toMatch(/HERALD_SIMULATORS_APNS_PORT: [\s\S]*HERALD_SIMULATORS_RECORD: /);
});
