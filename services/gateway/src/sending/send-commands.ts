import { type Bus, groupedPublish } from "@herald/bus";
import { SendV1 } from "@herald/contracts";

/** About two seconds of the highest load that a gateway takes. */
const mostWaiting = 10_000;

/** Publishes `send` commands; those that arrive while one is being written share an atomic batch. */
export const createSendCommands = (bus: () => Bus): ((command: SendV1) => Promise<void>) => {
  const publish = groupedPublish(bus, SendV1, { waiting: mostWaiting });
  return (command) => publish(command, command.notificationId);
};
