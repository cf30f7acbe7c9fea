import { createAudienceStore } from "../../../services/registry/src/stores/audience-store.ts";
import { type Broadcast, broadcast } from "../broadcast.ts";
import type { Row } from "../row.ts";
import type { Sink } from "../sinks.ts";

/** Users in one query, as a notification with many recipients looks them up. */
const atOnce = 500;
/** Queries in progress at a time. */
const concurrent = 2;
const lookedUp = 50_000;

/** A fixed walk over all users that visits them in no order of the database: a backend's list is not sorted by our ids. */
const shuffled = (count: number, from: number, users: number): string[] =>
  Array.from({ length: count }, (_, at) => `u:u_${((from + at) * 7_919) % users}`);

export const userLookupsRow: Row = {
  name: "user-lookups",
  about: "devices found by 500 user ids at a time among --largest devices, beside a send to a topic",
  async *measure({ system, sinks, runs, largest, sizes }) {
    const sink: Sink = sinks.apns;
    const devices = sizes.at(-1) ?? lookedUp;
    await system.seed("apns", "lookups", devices, (at) => ({ user: { by: "project", userId: `u_${at}` } }));
    if (largest > devices)
      await system.seed("apns", "others", largest - devices, (at) => ({
        user: { by: "project", userId: `u_${at + devices}` },
      }));
    const audience = createAudienceStore(system.database("registry"));
    const look = async (facets: readonly string[]): Promise<number> => {
      const found = await audience.named(system.project.id, { ids: [], hashes: [], facets }, facets.length * 2);
      return found?.size ?? 0;
    };
    const rates: number[] = [];
    const broadcasts: Broadcast[] = [];
    for (let run = 0; run < runs; run++) {
      broadcasts.push(await broadcast(system, sink, "lookups", devices));
      const users = shuffled(lookedUp, run * lookedUp, largest);
      const beganAt = performance.now();
      const counts: number[] = [];
      const worker = async () => {
        for (let next = users.splice(0, atOnce); next.length > 0; next = users.splice(0, atOnce))
          counts.push(await look(next));
      };
      await Promise.all(Array.from({ length: concurrent }, worker));
      const found = counts.reduce((sum, count) => sum + count, 0);
      if (found !== lookedUp) throw new Error(`${lookedUp} users have a device each, ${found} were found`);
      rates.push(lookedUp / ((performance.now() - beganAt) / 1_000));
    }
    const pushes = broadcasts.map((one) => one.pushesPerSecond);
    yield {
      title: `devices of ${atOnce} users at a time, among ${largest} devices`,
      lines: [
        { label: "devices/s", values: rates },
        { label: `pushes/s of a send to ${devices} devices`, values: pushes },
        { label: "ratio", values: rates.map((rate, at) => rate / (pushes[at] ?? 1)), digits: 2 },
      ],
    };
  },
};
