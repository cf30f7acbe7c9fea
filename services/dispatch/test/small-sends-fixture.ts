import type { SettledSend, SmallSendStore, StoredSend } from "../src/stores/small-send-store.ts";

type Insert = Parameters<SmallSendStore["insertEach"]>;

const only = <Value>([result]: readonly PromiseSettledResult<Value>[]): Value => {
  if (result?.status !== "fulfilled") throw result?.reason ?? new Error("there is no result");
  return result.value;
};

/** Stores one send. */
export const insertOne = async (
  store: Pick<SmallSendStore, "insertEach">,
  send: Insert[0][number],
  ...[claim, now]: readonly [Insert[1], Insert[2]]
): Promise<StoredSend> => {
  const stored = only(await store.insertEach([send], claim, now));
  if (!stored) throw new Error("it was there already");
  return stored;
};

/** Ends one send. */
export const endOne = async (
  store: Pick<SmallSendStore, "endEach">,
  document: SettledSend["document"],
  settled: SettledSend["settled"],
  now: Date,
) => only(await store.endEach([{ document, settled }], now));
