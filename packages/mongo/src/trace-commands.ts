import { failSpan, startClientSpan } from "@herald/kit";
import type { MongoClient } from "mongodb";

/**
 * A client span for each command that a recorded span causes, named after the command and its collection. Its filters and documents are
 * not recorded. The driver tells of commands only with `monitorCommands`.
 */
export const traceCommands = (client: MongoClient): void => {
  const spans = new Map<number, ReturnType<typeof startClientSpan>>();
  client.on("commandStarted", ({ requestId, commandName, databaseName, command }) => {
    const target: unknown = commandName === "getMore" ? command.collection : command[commandName];
    const collection = typeof target === "string" ? target : undefined;
    const span = startClientSpan(collection === undefined ? commandName : `${commandName} ${collection}`, {
      "db.system.name": "mongodb",
      "db.namespace": databaseName,
      "db.operation.name": commandName,
      ...(collection === undefined ? {} : { "db.collection.name": collection }),
    });
    if (span) spans.set(requestId, span);
  });
  const end = (requestId: number, failure?: Error) => {
    const span = spans.get(requestId);
    if (!span) return;
    spans.delete(requestId);
    if (failure) failSpan(span, failure);
    span.end();
  };
  client.on("commandSucceeded", ({ requestId }) => end(requestId));
  client.on("commandFailed", ({ requestId, failure }) => end(requestId, failure));
};
