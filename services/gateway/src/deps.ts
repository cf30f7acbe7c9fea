import type { OpenGroupV1, ReceiptGroupV1 } from "@herald/contracts";
import type { FairGate } from "@herald/kit";
import type { OpenTokens } from "@herald/payload";
import type { createAuthenticate } from "./auth/authenticate.ts";
import type { ShareOwner } from "./auth/caller.ts";
import type { OperatorDirectory, ProjectDirectory } from "./auth/directories.ts";
import type { RateLimits } from "./auth/rate-limits.ts";
import type { createSeal } from "./auth/seal.ts";
import type { Sessions } from "./auth/sessions.ts";
import type { SendRequest } from "./bus-connection.ts";
import type { Audit } from "./http/audit.ts";
import type { Idempotency } from "./idempotency/idempotency.ts";
import type { createHashMemory } from "./imports/hash-set.ts";
import type { PrepareChunk } from "./imports/store-lines.ts";
import type { ReadProjectLimits } from "./limits/project-limits.ts";
import type { QueueQuota } from "./limits/queue-quota.ts";
import type { ActivityStore } from "./sending/activities.ts";
import type { RecordReport } from "./sending/group-reports.ts";
import type { SendCommands } from "./sending/send-commands.ts";
import type { TemplateDirectory } from "./sending/templates.ts";
import type { GroupsFile } from "./sign-in/groups-file.ts";
import type { IdentityProvider } from "./sign-in/identity-provider.ts";
import type { EventStreams } from "./streams/event-streams.ts";
import type { ExportStreams } from "./streams/export-streams.ts";
import type { DeadLetters } from "./views/dead-letters.ts";
import type { StatusDirectory } from "./views/system-status.ts";

/** The dependencies of route handlers. */
export type RouteDeps = {
  readonly now: () => Date;
  /** Identifies the caller. Throws unauthenticated, forbidden, csrf-token-invalid or rate-limited. */
  readonly authenticate: ReturnType<typeof createAuthenticate>;
  readonly sendRequest: SendRequest;
  readonly projects: ProjectDirectory;
  readonly operators: OperatorDirectory;
  readonly sessions: Sessions;
  /** Undefined: people sign in by tokens alone. */
  readonly identityProvider: IdentityProvider | undefined;
  /** Seals the cookies of sign-ins by the identity provider. */
  readonly signInFlows: ReturnType<typeof createSeal>;
  readonly groupsFile: GroupsFile;
  /** How long a session by the identity provider lasts. */
  readonly signInSessionMs: number;
  readonly audit: Audit;
  readonly limits: RateLimits;
  readonly projectLimits: ReadProjectLimits;
  readonly queue: QueueQuota;
  readonly idempotency: Idempotency;
  readonly sends: SendCommands;
  readonly activities: ActivityStore;
  readonly templates: TemplateDirectory;
  readonly deadLetters: DeadLetters;
  /** What uploads of recipients remember of their targets. */
  readonly hashMemory: ReturnType<typeof createHashMemory>;
  /** Takes a slot for the upload of a file. Throws rate-limited. */
  readonly acquireUpload: (owner: ShareOwner) => () => void;
  /** Resolves when the stream has stored the lines. Throws bus-unavailable or queue-full. */
  readonly prepareChunk: PrepareChunk;
  readonly eventStreams: Pick<EventStreams, "open">;
  readonly status: Pick<StatusDirectory, "read">;
  readonly exportStreams: Pick<ExportStreams, "open">;
  /** Permits one request at a time that reads many audit rows; operators take turns. */
  readonly auditGate: FairGate;
  readonly openTokens: OpenTokens;
  readonly recordOpen: RecordReport<OpenGroupV1["opens"][number]>;
  readonly recordReceipt: RecordReport<ReceiptGroupV1["receipts"][number]>;
};

/** What a function needs that only passes a request on. */
export type RequestDeps = Pick<RouteDeps, "sendRequest">;
