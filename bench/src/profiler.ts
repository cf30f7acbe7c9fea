import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Interface } from "node:readline";
import { type Coverage, executedFiles } from "./executed-files.ts";
import type { CpuProfile } from "./top-functions.ts";
import { until } from "./until.ts";

/** Makes every Node process with this option open an inspector on a free port, and print its address. */
export const inspectorOptions = "--inspect=127.0.0.1:0";

const announced = /^(\w+) +\| Debugger listening on (ws:\S+)/;

/** Records CPU profiles of services during a measurement. */
export type Profiler = {
  /** Begins a row, whose name is part of the file names. */
  readonly begin: (row: string) => void;
  readonly start: () => Promise<void>;
  /** Writes the samples since `start`: one file for each service. */
  readonly stop: () => Promise<void>;
  /** The profiles since `begin`, by service. */
  readonly profiles: () => ReadonlyMap<string, readonly CpuProfile[]>;
  /** The files of this repository that ran in any service since the last call. The first call begins to count. */
  readonly executed: () => Promise<ReadonlySet<string>>;
  /** Disconnects from the services: a process does not exit while a client is connected to its inspector. */
  readonly close: () => void;
};

type Session = { readonly call: <T>(method: string, params?: object) => Promise<T>; readonly close: () => void };

type Reply = { readonly id?: number; readonly result?: unknown; readonly error?: { readonly message: string } };

/** Connects to a service's inspector over the Chrome DevTools protocol. */
const openSession = async (url: string): Promise<Session> => {
  const socket = new WebSocket(url);
  await once(socket, "open");
  const waiting = new Map<number, (reply: Reply) => void>();
  socket.addEventListener("message", ({ data }) => {
    const reply = JSON.parse(String(data)) as Reply;
    if (reply.id !== undefined) waiting.get(reply.id)?.(reply);
  });
  let calls = 0;
  const call = async <T>(method: string, params?: object): Promise<T> => {
    const id = ++calls;
    const reply = await new Promise<Reply>((resolve) => {
      waiting.set(id, resolve);
      socket.send(JSON.stringify({ id, method, params }));
    });
    waiting.delete(id);
    if (reply.error) throw new Error(`${method}: ${reply.error.message}`);
    return reply.result as T;
  };
  await call("Profiler.enable");
  return { call, close: () => socket.close() };
};

/** Reads the addresses of the services' inspectors from the output of the local stack, and writes profiles into the folder. */
export const createProfiler = (printed: Interface, services: readonly string[], folder: string): Profiler => {
  mkdirSync(folder, { recursive: true });
  const urls = new Map<string, string>();
  printed.on("line", (line: string) => {
    const [, name = "", url = ""] = announced.exec(line) ?? [];
    if (services.includes(name)) urls.set(name, url);
  });
  const sessions = new Map<string, Session>();
  const sessionOf = async (name: string): Promise<Session> => {
    const url = await until(`the inspector of ${name}`, async () => urls.get(name));
    const session = sessions.get(name) ?? (await openSession(url));
    sessions.set(name, session);
    return session;
  };
  const each = (work: (session: Session, name: string) => Promise<unknown>) =>
    Promise.all(services.map(async (name) => work(await sessionOf(name), name)));
  let row = "";
  let part = 0;
  let counting = false;
  const profiles = new Map<string, CpuProfile[]>();
  return {
    begin: (name) => {
      row = name;
      part = 0;
      for (const service of services) profiles.set(service, []);
    },
    start: async () => {
      await each(({ call }) => call("Profiler.start"));
    },
    stop: async () => {
      part++;
      await each(async ({ call }, name) => {
        const { profile } = await call<{ profile: CpuProfile }>("Profiler.stop");
        profiles.set(name, [...(profiles.get(name) ?? []), profile]);
        writeFileSync(join(folder, `${row}-${part}-${name}.cpuprofile`), JSON.stringify(profile));
      });
    },
    profiles: () => profiles,
    executed: async () => {
      const files = new Set<string>();
      await each(async ({ call }) => {
        if (!counting) await call("Profiler.startPreciseCoverage", { callCount: true });
        const { result } = await call<{ result: readonly Coverage[] }>("Profiler.takePreciseCoverage");
        for (const file of executedFiles(result)) files.add(file);
      });
      counting = true;
      return files;
    },
    close: () => {
      for (const { close } of sessions.values()) close();
    },
  };
};
