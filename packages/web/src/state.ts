import type { CallProblem } from "./problem.ts";
import { timely } from "./timely.ts";
import type { DeviceData } from "./wire.ts";

/** This browser's state of its device, in IndexedDB. The page and the service worker share it. */
export type State = {
  readonly gateway: string;
  readonly project: string;
  /** The user has subscribed and not unsubscribed since. */
  readonly wanted?: boolean;
  readonly device?: string | undefined;
  readonly credential?: string | undefined;
  /** The push endpoint that was last registered with Herald. */
  readonly endpoint?: string | undefined;
  /** The time of that registration, in ms since 1970, and its `data` as JSON. */
  readonly registeredAt?: number;
  readonly registeredData?: string;
  /** The metadata and identifiers that the device registers with. */
  readonly data: DeviceData;
  /** The logged-in user, as Herald confirmed, and the `iat` of the user token. */
  readonly user?: string | undefined;
  readonly userTokenIat?: number | undefined;
  /** The user token of a login that Herald has not confirmed yet. */
  readonly userToken?: string | undefined;
  /** A log-out that Herald has not confirmed yet: until then no push is shown. */
  readonly loggingOut?: boolean;
  /** A device that Herald has not deleted yet. */
  readonly leaving?: { readonly device: string; readonly credential: string } | undefined;
  /** By name: subscribed, or a change that has not reached Herald yet. */
  readonly topics?: Readonly<Record<string, "subscribed" | "add" | "remove">>;
};

/** Until when Herald asked to wait, in ms since 1970, and why. */
export type Block = { readonly until: number; readonly problem: CallProblem };

/** A report that Herald has not accepted yet. */
export type PendingReport = {
  readonly notification: string;
  readonly project: string;
  readonly token: string;
  readonly verb: "open" | "received" | "dismissed";
  /** When it happened, in ms since 1970. */
  readonly at: number;
  /** Of an open: the button that was pressed. */
  readonly button?: string | undefined;
};

/** Reports of a month offline: older ones give way. */
const maxReports = 100;

type Stores = { state: State; reports: PendingReport };

const done = <Value>(request: IDBRequest<Value>): Promise<Value> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

const noStorage = "storage-unavailable";

/** Opened for each use: the browser may delete the database at any time, and the next use creates it again. */
const use = async <Value>(name: keyof Stores, work: (store: IDBObjectStore) => IDBRequest<Value>): Promise<Value> => {
  const opening = indexedDB.open("herald", 1);
  opening.onupgradeneeded = () => {
    opening.result.createObjectStore("state");
    opening.result.createObjectStore("reports", { autoIncrement: true });
  };
  const database = await timely(done(opening), noStorage, () => {
    opening.onsuccess = () => opening.result.close();
  });
  try {
    const transaction = database.transaction(name, "readwrite");
    // A late write would replace what was stored meanwhile.
    return await timely(done(work(transaction.objectStore(name))), noStorage, () => transaction.abort());
  } finally {
    database.close();
  }
};

export const readState = async (): Promise<State | undefined> => {
  const state: State | undefined = await use("state", (store) => store.get("state"));
  return state && (await use("state", (store) => store.get("loggedOut")))
    ? { ...state, loggingOut: true, user: undefined, userToken: undefined }
    : state;
};

/** Call it within {@link exclusively}, with a state that was read in the same call. */
export const writeState = async (state: State): Promise<State> => {
  await use("state", (store) => store.put(state, "state"));
  return state;
};

/** Applies a log-out at once. It has its own entry, so that a running call cannot overwrite it. */
export const markLoggedOut = (): Promise<unknown> => use("state", (store) => store.put(true, "loggedOut"));
/** Call it after writing the state that contains the log-out. */
export const unmarkLoggedOut = (): Promise<unknown> => use("state", (store) => store.delete("loggedOut"));

/** Has its own entry, because calls are made outside {@link exclusively}, too. */
export const readBlock = (): Promise<Block | undefined> => use("state", (store) => store.get("block"));
export const writeBlock = (block: Block): Promise<unknown> => use("state", (store) => store.put(block, "block"));

export const reportKeys = (): Promise<IDBValidKey[]> => use("reports", (store) => store.getAllKeys());
export const getReport = (key: IDBValidKey): Promise<PendingReport | undefined> =>
  use("reports", (store) => store.get(key));
export const deleteReport = (key: IDBValidKey): Promise<unknown> => use("reports", (store) => store.delete(key));
export const addReport = async (report: PendingReport): Promise<void> => {
  await use("reports", (store) => store.add(report));
  for (const key of (await reportKeys()).slice(0, -maxReports)) await deleteReport(key);
};

/** Runs one `work` at a time across all tabs and the worker. It must end: until then every other one waits. */
export const exclusively = <Value>(work: () => Promise<Value>): Promise<Value> =>
  navigator.locks ? navigator.locks.request("herald", work) : work();
