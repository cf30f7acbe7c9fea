import type { DeviceData } from "./wire.ts";

/** What this browser remembers of its device, in IndexedDB: the page and the service worker share it. */
export type State = {
  readonly gateway: string;
  readonly project: string;
  /** The person asked for pushes and has not unsubscribed since. */
  readonly wanted?: boolean;
  readonly device?: string | undefined;
  readonly credential?: string | undefined;
  /** The subscription that Herald was last told of. */
  readonly endpoint?: string | undefined;
  /** When that was, in ms since 1970, and with which `data`, as JSON. */
  readonly registeredAt?: number;
  readonly registeredData?: string;
  /** What the device registers with. */
  readonly data: DeviceData;
  /** Who is logged in, as Herald answered, and by which token. */
  readonly user?: string | undefined;
  readonly userTokenIat?: number | undefined;
  /** A login that Herald has not answered yet. */
  readonly userToken?: string | undefined;
  /** A log-out that Herald has not answered yet: until then nothing is shown. */
  readonly loggingOut?: boolean;
  /** A device that Herald has not deleted yet. */
  readonly leaving?: { readonly device: string; readonly credential: string } | undefined;
  /** By name: subscribed, or not yet told to Herald. */
  readonly topics?: Readonly<Record<string, "subscribed" | "add" | "remove">>;
};

/** An open that Herald has not taken yet. */
export type Open = { readonly notification: string; readonly project: string; readonly token: string };

type Stores = { state: State; opens: Open };

const done = <Value>(request: IDBRequest<Value>): Promise<Value> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** Opened for each use: the browser may delete the database at any time, and the next use creates it again. */
const use = async <Value>(
  name: keyof Stores,
  mode: IDBTransactionMode,
  work: (store: IDBObjectStore) => IDBRequest<Value>,
): Promise<Value> => {
  const opening = indexedDB.open("herald", 1);
  opening.onupgradeneeded = () => {
    opening.result.createObjectStore("state");
    opening.result.createObjectStore("opens", { autoIncrement: true });
  };
  const database = await done(opening);
  try {
    const transaction = database.transaction(name, mode);
    const result = await done(work(transaction.objectStore(name)));
    return result;
  } finally {
    database.close();
  }
};

export const readState = async (): Promise<State | undefined> => {
  const state: State | undefined = await use("state", "readonly", (store) => store.get("state"));
  return state && (await use("state", "readonly", (store) => store.get("loggedOut")))
    ? { ...state, loggingOut: true, user: undefined, userToken: undefined }
    : state;
};

/** Within {@link exclusively}, of a state that was read there. */
export const writeState = async (state: State): Promise<State> => {
  await use("state", "readwrite", (store) => store.put(state, "state"));
  return state;
};

/** A log-out counts at once, whatever a call that is under way waits for, and writes afterwards. */
export const markLoggedOut = (): Promise<unknown> => use("state", "readwrite", (store) => store.put(true, "loggedOut"));
/** Once the state that was read since is written. */
export const unmarkLoggedOut = (): Promise<unknown> => use("state", "readwrite", (store) => store.delete("loggedOut"));

export const addOpen = (open: Open): Promise<unknown> => use("opens", "readwrite", (store) => store.add(open));
export const openKeys = (): Promise<IDBValidKey[]> => use("opens", "readonly", (store) => store.getAllKeys());
export const getOpen = (key: IDBValidKey): Promise<Open | undefined> =>
  use("opens", "readonly", (store) => store.get(key));
export const deleteOpen = (key: IDBValidKey): Promise<unknown> =>
  use("opens", "readwrite", (store) => store.delete(key));

/** One at a time, in all tabs and the worker. */
export const exclusively = <Value>(work: () => Promise<Value>): Promise<Value> =>
  navigator.locks ? navigator.locks.request("herald", work) : work();
