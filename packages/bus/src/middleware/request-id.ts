import { headerNames } from "@herald/contracts";
import { withRequestId } from "@herald/kit";
import type { Step } from "../delivery-batch.ts";

/** Handles a message under the id of the request that caused it. A batch belongs to many. */
export const withRequestIdOf: Step = (batch, next) => {
  const [task] = batch.tasks;
  const requestId = batch.tasks.length === 1 ? task?.received.headers?.get(headerNames.requestId) : undefined;
  return requestId ? withRequestId(requestId, next) : next();
};
