import { durables, type ProjectId } from "@herald/contracts";
import { eventually, operateBroker } from "@herald/testing";
import type { System } from "../harness/system.ts";

export type Snapshot = Readonly<Record<string, readonly string[]>>;

/** All documents of the services' databases, by database and collection; with `project` only its documents. */
export async function snapshotOf(system: System, project?: ProjectId): Promise<Snapshot> {
  const { client, prefix } = system.registryDatabase;
  const found: Record<string, readonly string[]> = {};
  for (const service of ["registry", "dispatch", "analytics"]) {
    const db = client.db(`${prefix}_${service}`);
    for (const { name: collection } of await db.listCollections().toArray()) {
      const documents = (await db.collection(collection).find().toArray()).map((one) => JSON.stringify(one)).sort();
      found[`${service}.${collection}`] = documents.filter((one) => project === undefined || one.includes(project));
    }
  }
  return found;
}

/** What a document carries until a background job is done with it: events to publish, statistics to add. */
const underWay = ["outbox", "aggregated"] as const;

/** As {@link snapshotOf}, once nothing is under way: every consumer has settled all messages and no document waits for a job. */
export async function restingSnapshotOf(system: System, project?: ProjectId): Promise<Snapshot> {
  const hands = await operateBroker(system.broker);
  try {
    return await eventually(
      async () => {
        const snapshot = await snapshotOf(system, project);
        for (const [name, documents] of Object.entries(snapshot))
          for (const document of documents.map((one) => JSON.parse(one) as Record<string, unknown>))
            for (const field of underWay)
              if (field in document && document[field] !== true)
                throw new Error(`${name} ${document._id} has ${field}`);
        // The last look: what a consumer has settled since the snapshot could be missing in it.
        for (const [name, { stream }] of Object.entries(durables)) {
          const left = await hands.left(stream, name);
          if (left > 0) throw new Error(`${name} has ${left} messages left`);
        }
        if (JSON.stringify(await snapshotOf(system, project)) !== JSON.stringify(snapshot))
          throw new Error("something was written meanwhile");
        return snapshot;
      },
      { timeoutMs: 60_000 },
    );
  } finally {
    await hands.close();
  }
}
