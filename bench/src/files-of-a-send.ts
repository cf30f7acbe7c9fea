import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Provider } from "@herald/contracts";
import { startSystem } from "./herald.ts";
import { end, firstLine, start } from "./processes.ts";
import { pushed, resetSink, type Sink } from "./sinks.ts";

/** `node --conditions=@herald/source bench/src/files-of-a-send.ts`: the source files that one send to a device needs to run. */

/** Longer than the intervals of reports and most sweeps, so that a file which runs by itself is seen without a send. */
const restMs = 40_000;
/** After the push: outcomes are written, the message is acknowledged, and events are published and counted. */
const settledMs = 1_000;
const sends = 5;

const processes = Provider.options.map((provider) => start("bench/src/sink.ts", [provider]));
let system: Awaited<ReturnType<typeof startSystem>> | undefined;
try {
  const [apns, fcm, webpush] = await Promise.all(processes.map((process) => firstLine<Sink>(process)));
  if (!apns || !fcm || !webpush) throw new Error("a sink did not start");
  system = await startSystem({ apns, fcm, webpush }, await mkdtemp(join(tmpdir(), "herald-profiles-")));
  const { post, profiler, seed } = system;
  const executed = async () => (await profiler?.executed()) ?? new Set<string>();
  const [device] = await seed("apns", "one", 1);
  const sendOne = async () => {
    await resetSink(apns);
    await post({ title: "Hello", body: "World", targets: [`device:${device}`], ttl: 3600 });
    await pushed(apns, 1, 10);
    await delay(settledMs);
  };
  // The first sends connect to the provider and fill caches.
  for (let n = 0; n < sends; n++) await sendOne();
  await delay(restMs / 2);
  await executed();
  await delay(restMs);
  const atRest = await executed();
  let files: readonly string[] | undefined;
  for (let n = 0; n < sends; n++) {
    await executed();
    await sendOne();
    const now = await executed();
    files = (files ?? [...now]).filter((file) => now.has(file));
  }
  const own = (files ?? []).filter((file) => !atRest.has(file)).toSorted();
  console.log(own.join("\n"));
  const count = (prefix: string) => own.filter((file) => file.startsWith(prefix)).length;
  console.log(`\n${own.length} files run for a send and not at rest, ${count("services/")} of them in the services.`);
  console.log(`${own.length - count("services/analytics/")} without analytics, which gets the events after the push.`);
} finally {
  await system?.stop();
  for (const process of processes) await end(process);
}
