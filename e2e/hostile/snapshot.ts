import type { ProjectId } from "@herald/contracts";
import type { System } from "../harness/system.ts";

const databases = {
  registry: "HERALD_REGISTRY_DATABASE",
  dispatch: "HERALD_DISPATCH_DATABASE",
  analytics: "HERALD_ANALYTICS_DATABASE",
} as const;

/** Everything that the databases of the services hold, by database and collection; of one project where it is named. */
export async function snapshotOf(system: System, project?: ProjectId): Promise<Record<string, readonly string[]>> {
  const { client } = system.registryDatabase;
  const found: Record<string, readonly string[]> = {};
  for (const [service, variable] of Object.entries(databases)) {
    const name = system.environmentOf(service as keyof typeof databases)[variable];
    const db = client.db(name);
    for (const { name: collection } of await db.listCollections().toArray()) {
      const documents = (await db.collection(collection).find().toArray()).map((one) => JSON.stringify(one)).sort();
      found[`${service}.${collection}`] = documents.filter((one) => project === undefined || one.includes(project));
    }
  }
  return found;
}
