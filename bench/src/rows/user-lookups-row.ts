import { createAudienceStore } from "../../../services/registry/src/stores/audience-store.ts";
import { type Broadcast, broadcast } from "../broadcast.ts";
import type { Row } from "../row.ts";
import type { Sink } from "../sinks.ts";

/** Users in one query, as a notification with many recipients looks them up. */
const atOnce = 2_000;
/** Queries in progress at a time. */
const concurrent = 2;
const lookedUp = 50_000;

/** A fixed walk over all users that visits them in no order of the database: a backend's list is not sorted by our ids. */
const shuffled = (count: number, from: number, users: number): string[] =>
  Array.from({ length: count }, (_, at) => `u_${((from + at) * 7_919) % users}`);

/** Looks all users up, and resolves to how many a second. */
const rateOf = async (
  users: readonly string[],
  look: (some: readonly string[]) => Promise<number>,
): Promise<number> => {
  const beganAt = performance.now();
  let at = 0;
  let found = 0;
  const worker = async () => {
    while (at < users.length) {
      at += atOnce;
      const count = await look(users.slice(at - atOnce, at));
      found += count;
    }
  };
  await Promise.all(Array.from({ length: concurrent }, worker));
  if (found !== users.length) throw new Error(`${users.length} users have a device each, ${found} were found`);
  return users.length / ((performance.now() - beganAt) / 1_000);
};

export const userLookupsRow: Row = {
  name: "user-lookups",
  about: "devices found by 2,000 user ids at a time among --largest devices, beside a send to a topic",
  async *measure({ system, sinks, runs, largest, sizes }) {
    const sink: Sink = sinks.apns;
    const devices = sizes.at(-1) ?? lookedUp;
    await system.seed("apns", "lookups", devices, (at) => ({ user: { by: "project", userId: `u_${at}` } }));
    if (largest > devices)
      await system.seed("apns", "others", largest - devices, (at) => ({
        user: { by: "project", userId: `u_${at + devices}` },
      }));
    const audience = createAudienceStore(system.database("registry"));
    const { id } = system.project;
    const byUser = async (users: readonly string[]): Promise<number> =>
      (await audience.ofRecipients(id, "user", users)).length;
    const byFacet = async (users: readonly string[]): Promise<number> => {
      const facets = users.map((user) => `u:${user}`);
      return (await audience.named(id, { ids: [], hashes: [], facets }, facets.length * 2))?.size ?? 0;
    };
    const rates: number[] = [];
    const facetRates: number[] = [];
    const broadcasts: Broadcast[] = [];
    for (let run = 0; run < runs; run++) {
      broadcasts.push(await broadcast(system, sink, "lookups", devices));
      rates.push(await rateOf(shuffled(lookedUp, 2 * run * lookedUp, largest), byUser));
      facetRates.push(await rateOf(shuffled(lookedUp, (2 * run + 1) * lookedUp, largest), byFacet));
    }
    const pushes = broadcasts.map((one) => one.pushesPerSecond);
    yield {
      title: `devices of ${atOnce} users at a time, among ${largest} devices`,
      lines: [
        { label: "devices/s by the users' index", values: rates },
        { label: "devices/s by the facets' index", values: facetRates },
        { label: `pushes/s of a send to ${devices} devices`, values: pushes },
        { label: "ratio", values: rates.map((rate, at) => rate / (pushes[at] ?? 1)), digits: 2 },
      ],
    };
  },
};
