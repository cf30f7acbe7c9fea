import { type Bus, groupedPublish } from "@herald/bus";
import { SendV1 } from "@herald/contracts";

/** About two seconds of the highest load that a gateway takes. */
const mostWaiting = 10_000;
/** So many usual ones, or sixty-four of the largest. */
const maxBytes = 64 * 1_048_576;

/** Publishes `send` commands of so many bytes; those that arrive while one is being written share an atomic batch. */
export const createSendCommands = (bus: () => Bus): ((command: SendV1, bytes: number) => Promise<void>) => {
  const publish = groupedPublish(bus, SendV1, { waiting: mostWaiting, maxBytes });
  return (command, bytes) => publish(command, command.notificationId, bytes);
};
