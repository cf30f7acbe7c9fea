import { hash } from "node:crypto";
import type { Bucket, Entry, WriteOptions } from "@herald/bus";
import type { IdempotencyRecord } from "@herald/contracts";
import { HeraldError, type Logger } from "@herald/kit";
import { type KeyShare, keyBytes } from "./key-share.ts";

/** What every try of one request shares, so that a repeat does what the first began. */
export type Attempt = {
  readonly id: string;
  readonly at: Date;
  /** A repeat would do it again under this id; absent: there is no key to repeat it with. */
  readonly keyed?: true;
};

type Answered = {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};

export type Asked = {
  /** Absent: every request is one of its own. */
  readonly key: string | undefined;
  /** Whose keys these are: a project, or the administration. */
  readonly owner: string;
  /** Method and path as they were sent. */
  readonly route: string;
  readonly body: unknown;
};

/** How a request is carried out. */
export type Work<Reply extends Answered> = {
  readonly newId: (now: Date) => string;
  /** Throws what refuses the request, so that it does not use up its key. `perform` throws the same. */
  readonly check?: (attempt: Attempt) => unknown;
  readonly perform: (attempt: Attempt) => Promise<Reply>;
  /** Makes the answer again from the request alone. Without it the answer's `data` is kept, never what stands beside it. */
  readonly recall?: (attempt: Attempt) => Reply;
};

/**
 * Carries a request out once for each Idempotency-Key. Throws idempotency-key-reused, request-in-progress, bus-away, and
 * whatever `perform` throws; a request that failed may be tried again under its key at once.
 */
export type Once = <Reply extends Answered>(asked: Asked, work: Work<Reply>) => Promise<Reply>;

/** {@link Once}, for a request that is known. */
export type OnceForKey = <Reply extends Answered>(work: Work<Reply>) => Promise<Reply>;

/** The shorter of two lifetimes, where undefined is the longest. */
const shorter = (one: WriteOptions, ttlMs: number | undefined): WriteOptions =>
  ttlMs === undefined ? one : { ttlMs: Math.min(ttlMs, one.ttlMs ?? ttlMs) };

/** Older than any request that is still running: the HTTP server and every question give up before. */
const runningMs = 10_000;

/** 128 bits: by chance two requests never share them, and whoever looked for two that do could only confuse their own project. */
const digest = (text: string): string => hash("sha256", text, "buffer").subarray(0, 16).toString("base64url");

/** Only `data` is kept: a secret stands beside it, and is shown once. */
const withoutSecrets = (body: unknown): unknown =>
  typeof body === "object" && body !== null && "data" in body ? { data: body.data } : {};

type Needs = {
  readonly keys: KeyShare;
  readonly bucket: () => Bucket<IdempotencyRecord>;
  readonly now: () => Date;
  readonly log: Logger;
};

export const createOnce = ({ keys, bucket, now, log }: Needs): Once => {
  /** What is known of a key. Where it cannot be read, the request may have been carried out, so nothing is done under that key. */
  const known = async (place: string): Promise<Entry<IdempotencyRecord> | undefined> => {
    try {
      return await bucket().get(place);
    } catch (error) {
      if (!(error instanceof HeraldError && error.code === "schema")) throw error;
      log.error({ err: error }, "an idempotency record cannot be read");
      throw reused("what is known of it cannot be read; use a new key");
    }
  };

  /** Takes the key for this request, or tells what became of the one that has it. */
  const take = async (
    key: string,
    sent: string,
    newId: (now: Date) => string,
    kept: WriteOptions,
  ): Promise<{ record: IdempotencyRecord; replay: boolean }> => {
    const at = now();
    const fresh: IdempotencyRecord = { body: sent, id: newId(at), at: at.getTime() };
    if (await bucket().create(key, fresh, kept)) return { record: fresh, replay: false };
    const found = await known(key);
    // It vanished in between: its 24 hours ended this very moment.
    if (found === undefined) throw inProgress();
    const { value: earlier, revision } = found;
    if (earlier.body !== sent) throw reused("was used with another body; use a new key");
    if (earlier.answer !== undefined) return { record: earlier, replay: true };
    const since = earlier.triedAt ?? earlier.at;
    if (earlier.released !== true && at.getTime() - since < runningMs) throw inProgress();
    const { released: _, ...mine } = { ...earlier, triedAt: at.getTime() };
    if (!(await bucket().update(key, mine, revision, kept))) throw inProgress();
    return { record: mine, replay: false };
  };

  /** What it could not note only costs a repeat its shortcut: the ids make the repeat harmless. */
  const note = async (key: string, record: IdempotencyRecord, kept: WriteOptions): Promise<void> => {
    await bucket()
      .put(key, record, kept)
      .catch((err: unknown) => log.warn({ err }, "an idempotency record could not be completed"));
  };

  return async ({ key, owner, route, body }, { newId, check, perform, recall }) => {
    const begun = now();
    if (key === undefined) return perform({ id: newId(begun), at: begun });
    const place = digest(JSON.stringify([owner, route, key]));
    const sent = digest(JSON.stringify(body) ?? "");
    try {
      check?.({ id: newId(begun), at: begun });
    } catch (refusal) {
      // What was accepted once stays so, even where it would be refused by now.
      const earlier = await known(place);
      if (earlier?.value.body !== sent || earlier.value.answer === undefined) throw refusal;
    }
    const ttlMs = keys.use(owner, keyBytes);
    // Until it is answered, nobody else may take it up.
    const kept = ttlMs === undefined ? {} : { ttlMs: Math.max(ttlMs, runningMs) };
    const { record, replay } = await take(place, sent, newId, kept);
    const attempt: Attempt = { id: record.id, at: new Date(record.at), keyed: true };
    if (replay) {
      const headers = { "idempotent-replayed": "true" };
      if (recall !== undefined) return { ...recall(attempt), headers };
      return { ...record.answer, headers } as Awaited<ReturnType<typeof perform>>;
    }
    try {
      const reply = await perform(attempt);
      const answer = { status: reply.status, ...(recall === undefined ? { body: withoutSecrets(reply.body) } : {}) };
      const bytes = recall === undefined ? Buffer.byteLength(JSON.stringify(answer)) : 0;
      await note(place, { ...record, answer }, shorter(kept, bytes === 0 ? undefined : keys.use(owner, bytes)));
      return reply;
    } catch (error) {
      const noted = note(place, { ...record, released: true }, kept);
      // With the bus away the note would only hold up the answer.
      if (!(error instanceof HeraldError && error.code === "bus-away")) await noted;
      throw error;
    }
  };
};

const reused = (problem: string): HeraldError =>
  new HeraldError("idempotency-key-reused", `Idempotency-Key: ${problem}`);

const inProgress = (): HeraldError =>
  new HeraldError("request-in-progress", "Idempotency-Key: the first request with this key is still running", {
    retryAfterSeconds: 1,
  });
