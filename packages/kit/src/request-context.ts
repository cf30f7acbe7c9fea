import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";

type Context = {
  readonly requestId?: string | undefined;
  readonly ownRequestId?: string | undefined;
  readonly deadline?: Deadline | undefined;
};

const storage = new AsyncLocalStorage<Context>();

/** Runs a function, and all work that it starts, with a request id. `ownId`: the id that this process made for the request, if it did. */
export const withRequestId = <T>(id: string, fn: () => T, ownId?: string): T =>
  storage.run({ ...storage.getStore(), requestId: id, ownRequestId: ownId }, fn);

/** The request id of the current work, if it has one. */
export const currentRequestId = (): string | undefined => storage.getStore()?.requestId;

/** The id of the current HTTP request that no client chose: its request id if Herald made that. */
export const currentOwnRequestId = (): string | undefined => storage.getStore()?.ownRequestId;

/** Runs a function, and all work that it starts, for a caller who waits until the deadline. */
export const runWithDeadline = <T>(deadline: Deadline | undefined, fn: () => T): T =>
  storage.run({ ...storage.getStore(), deadline }, fn);

/** The deadline of the caller of the current work; undefined: no caller waits. */
export const currentDeadline = (): Deadline | undefined => storage.getStore()?.deadline;

/** Appears in logs and headers, so it contains no character that could forge a line or a header. Long enough for a UUID or a trace id. */
const acceptable = /^[A-Za-z0-9._:~-]{1,128}$/;

/** The client's request id if it is safe, else a new one. */
export const acceptRequestId = (candidate: string | string[] | undefined): string =>
  typeof candidate === "string" && acceptable.test(candidate) ? candidate : randomUUID();

/** The end of a caller's wait. Only this process measures it, so clocks of several machines need not agree. */
export type Deadline = {
  /** Milliseconds left; 0 after the deadline. */
  remainingMs(): number;
  /** Aborted at the deadline. Created on first use: most work ends long before. */
  readonly signal: AbortSignal;
};

/** The deadline in so many milliseconds from now. */
export const createDeadline = (ms: number): Deadline => {
  const at = performance.now() + ms;
  const remainingMs = () => Math.max(0, at - performance.now());
  let signal: AbortSignal | undefined;
  return {
    remainingMs,
    get signal() {
      signal ??= AbortSignal.timeout(Math.ceil(remainingMs()));
      return signal;
    },
  };
};

/** Resolves when `work` has settled, or after `ms`; true if `work` settled in time. Leaves no timer behind. */
export const withTimeout = (ms: number, work: Promise<unknown>): Promise<boolean> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms);
    const end = () => {
      clearTimeout(timer);
      resolve(true);
    };
    work.then(end, end);
  });
