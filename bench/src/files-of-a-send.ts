import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Provider } from "@herald/contracts";
import { startSystem } from "./herald.ts";
import { end, firstLine, start } from "./processes.ts";
import { pushed, resetSink, type Sink } from "./sinks.ts";

/** After the push: outcomes are written, the message is acknowledged, and events are published and counted. */
const settledMs = 1_000;
const sends = 5;

/** The source files that ran while one plain send to a device was made, and in as long a time without one: of several of both. */
type Windows = { readonly sends: readonly ReadonlySet<string>[]; readonly rests: readonly ReadonlySet<string>[] };

/** The files that every send runs, and no more than so many of the rests, sorted. */
export const filesOfEach = ({ sends: [first = new Set(), ...others], rests }: Windows, maxRests: number): string[] =>
  [...first]
    .filter((file) => others.every((files) => files.has(file)))
    .filter((file) => rests.filter((files) => files.has(file)).length <= maxRests)
    .toSorted();

/** Starts a system, and sends. */
export const executedFilesOfSends = async (rests: number): Promise<Windows> => {
  const processes = Provider.options.map((provider) => start("bench/src/sink.ts", [provider]));
  let system: Awaited<ReturnType<typeof startSystem>> | undefined;
  try {
    const [apns, fcm, webpush] = await Promise.all(processes.map((process) => firstLine<Sink>(process)));
    if (!apns || !fcm || !webpush) throw new Error("a sink did not start");
    system = await startSystem({ apns, fcm, webpush }, await mkdtemp(join(tmpdir(), "herald-profiles-")));
    const { post, profiler, seed } = system;
    const [device] = await seed("apns", "one", 1);
    const sendOne = async () => {
      await resetSink(apns);
      await post({ title: "Hello", body: "World", targets: [`device:${device}`], ttl: 3600 });
      await pushed(apns, 1, 10);
      await delay(settledMs);
    };
    const executedIn = async (work: () => Promise<unknown>) => {
      await profiler?.executed();
      await work();
      return (await profiler?.executed()) ?? new Set<string>();
    };
    // The first sends connect to the provider and fill caches.
    for (let n = 0; n < sends; n++) await sendOne();
    const windows = { sends: [] as ReadonlySet<string>[], rests: [] as ReadonlySet<string>[] };
    for (let n = 0; n < sends; n++) windows.sends.push(await executedIn(sendOne));
    for (let n = 0; n < rests; n++) windows.rests.push(await executedIn(() => delay(settledMs)));
    return windows;
  } finally {
    await system?.stop();
    for (const process of processes) await end(process);
  }
};
