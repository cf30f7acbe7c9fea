/** How a test file gets its broker. */
export type BrokerSource =
  | { kind: "shared"; url: string; user?: string; password?: string }
  | { kind: "container" }
  | { kind: "binary"; path: string };

declare module "vitest" {
  export interface ProvidedContext {
    /** The database server of this run, shared by all files. `freshDatabase()` creates a database on it. */
    heraldMongoUrl: string;
    heraldBrokerSource: BrokerSource;
  }
}
