import { JetStreamApiError } from "@nats-io/jetstream";
import { PermissionViolationError, RequestError } from "@nats-io/transport-node";

/** Why the bootstrap step could not make what is declared, and what its operator can do. */
export const whyNotMade = (error: unknown): string => {
  if (error instanceof Error && error.name === "JetStreamNotEnabled")
    return "JetStream is not enabled for this user: see `jetstream` in infra/nats.conf, for the server and for the account";
  if (
    error instanceof PermissionViolationError ||
    (error instanceof RequestError && error.cause instanceof PermissionViolationError)
  )
    return "the user may not make streams: run this as herald-bootstrap of infra/nats.conf, and compare that file after an upgrade";
  const reason = error instanceof Error ? error.message : String(error);
  if (error instanceof JetStreamApiError && /replicas > 1|no suitable peers/.test(reason))
    return `HERALD_NATS_REPLICAS is more than there are brokers: ${reason}`;
  if (error instanceof JetStreamApiError && /insufficient|storage resources/.test(reason))
    return `the broker has less room than HERALD_NATS_STORAGE says: ${reason}`;
  return reason;
};
