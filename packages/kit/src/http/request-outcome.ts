import type { ServerResponse } from "node:http";
import type { ErrorCode } from "@herald/contracts";

/** What logs, spans and metrics say of a request beside its status. `route` is a pattern, so its cardinality is low. */
type RequestOutcome = { route: string; code?: ErrorCode };

const outcomes = new WeakMap<ServerResponse, RequestOutcome>();

export const outcomeOf = (response: ServerResponse): RequestOutcome => {
  const outcome = outcomes.get(response) ?? { route: "unmatched" };
  outcomes.set(response, outcome);
  return outcome;
};
