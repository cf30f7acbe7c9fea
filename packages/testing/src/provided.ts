/** How a test file gets its broker. */
export type BrokerSource =
  | { kind: "shared"; url: string; user?: string; password?: string }
  | { kind: "container" }
  | { kind: "binary"; path: string };

declare module "vitest" {
  export interface ProvidedContext {
    /** The database of this run, for all files; `freshDatabase()` gives a file its own part of it. */
    heraldMongoUrl: string;
    heraldBrokerSource: BrokerSource;
  }
}
