import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import type { Deadline } from "./deadline.ts";

type Context = { readonly requestId?: string | undefined; readonly deadline?: Deadline | undefined };

const storage = new AsyncLocalStorage<Context>();

/** Runs a function, and everything it starts, under a request id. */
export const withRequestId = <T>(id: string, fn: () => T): T =>
  storage.run({ ...storage.getStore(), requestId: id }, fn);

/** The request id of what is running, if it has one. */
export const currentRequestId = (): string | undefined => storage.getStore()?.requestId;

/** Runs a function, and everything it starts, for a caller who waits until the deadline. */
export const withinDeadline = <T>(deadline: Deadline | undefined, fn: () => T): T =>
  storage.run({ ...storage.getStore(), deadline }, fn);

/** How long the caller waits for the current work; undefined: no caller waits. */
export const currentDeadline = (): Deadline | undefined => storage.getStore()?.deadline;

/** Goes into logs and headers, so nothing that could forge a line or a header; long enough for a UUID or a trace id. */
const acceptable = /^[A-Za-z0-9._:~-]{1,128}$/;

/** A stranger's request id where it is harmless, else a new one. */
export const acceptRequestId = (candidate: string | string[] | undefined): string =>
  typeof candidate === "string" && acceptable.test(candidate) ? candidate : randomUUID();
