import { AsyncLocalStorage } from "node:async_hooks";
import { type Bus, type Message, publishTogether } from "@herald/bus";
import { SendV1 } from "@herald/contracts";
import { createGroupCommit } from "./group-commit.ts";

/** Past 100 messages a batch gains nothing: the disk sync they share is small beside them. The broker takes 1,000. */
const mostPerBatch = 100;
/** While one batch is synced to disk the next is on its way. Measured: one leaves the disk idle, four make smaller batches. */
const concurrentBatches = 2;
/** About two seconds of the highest load that a gateway takes. */
const mostWaiting = 10_000;

/** Publishes `send` commands; those that arrive while one is being written share an atomic batch. */
export const createSendCommands = (bus: () => Bus): ((command: SendV1) => Promise<void>) => {
  const commit = createGroupCommit<Message<typeof SendV1.schema>>((messages) => publishTogether(bus(), messages), {
    most: mostPerBatch,
    concurrent: concurrentBatches,
    waiting: mostWaiting,
  });
  return (data) =>
    // Each message keeps the request id and the trace of its own request.
    commit({ contract: SendV1, data, id: data.notificationId, within: AsyncLocalStorage.snapshot() });
};
