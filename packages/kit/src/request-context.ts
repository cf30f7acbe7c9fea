import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";

const storage = new AsyncLocalStorage<string>();

/** Runs a function, and everything it starts, under a request id. */
export const withRequestId = <T>(id: string, fn: () => T): T => storage.run(id, fn);

/** The request id of what is running, if it has one. */
export const currentRequestId = (): string | undefined => storage.getStore();

/** Goes into logs and headers, so nothing that could forge a line or a header; long enough for a UUID or a trace id. */
const acceptable = /^[A-Za-z0-9._:~-]{1,128}$/;

/** A stranger's request id where it is harmless, else a new one. */
export const acceptRequestId = (candidate: string | string[] | undefined): string =>
  typeof candidate === "string" && acceptable.test(candidate) ? candidate : randomUUID();
