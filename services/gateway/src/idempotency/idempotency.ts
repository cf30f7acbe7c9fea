import { errors, type IdempotencyRecord } from "@herald/contracts";
import { HeraldError, hasCode, isUnavailable } from "@herald/kit";
import { digest, isTryOf, type KeyedRequest, type KeyRecords, keyReused } from "./key-records.ts";
import { type KeyShare, keyBytes } from "./key-share.ts";

/** Identical for all attempts of one request, so that a repeat completes the first attempt. */
export type Attempt<Id extends string = string> = {
  readonly id: Id;
  readonly at: Date;
  /** The notifications of a batch that an earlier attempt accepted. */
  readonly batch?: IdempotencyRecord["batch"];
};

/** The first known attempt of a request. */
export type FirstTry = {
  readonly at: Date;
  /** Absent: every request is performed. */
  readonly key?: KeyedRequest;
};

export type Answered = {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string | string[]>>;
};

export type Asked = {
  readonly key: string;
  /** The owner of the key: a project, or `admin`. */
  readonly owner: string;
  /** Method and path as sent. */
  readonly route: string;
  readonly body: unknown;
};

/** How a request is performed. */
export type Work<Reply extends Answered, Id extends string = string> = {
  /** The id that the request creates; absent: it creates none, or needs none to be repeatable. */
  readonly newId?: (now: Date) => Id;
  /** Throws the error that refuses the request before its key is claimed. `perform` throws the same. */
  readonly check?: (attempt: Attempt<Id>) => unknown;
  /** Performs the request. A repeat of an interrupted attempt calls it again. */
  readonly perform: (attempt: Attempt<Id>) => Promise<Reply>;
  /**
   * Performs the first attempt instead of `perform`: claims its key, grouped with other requests. Undefined when the key is already
   * claimed. A request refused with a 4xx leaves its key free.
   */
  readonly performFirst?: (first: FirstTry) => Promise<Reply | undefined>;
  /** How a repeat gets the response of an earlier attempt. Without it, the response's `data` is stored. */
  readonly earlier?: EarlierResponse<Reply, Id>;
};

/** Responses that need not be stored: the claim of the key remains its only record. */
export type EarlierResponse<Reply extends Answered, Id extends string = string> = {
  /** Looks up what the attempt created. Throws when its service or database is unavailable. */
  readonly wasPerformed: (attempt: Attempt<Id>) => Promise<boolean>;
  /** Rebuilds the response of an attempt that was performed. */
  readonly rebuild: (attempt: Attempt<Id>) => Reply | Promise<Reply>;
};

/**
 * Performs a request once per Idempotency-Key. Throws idempotency-key-reused, request-in-progress, bus-unavailable, and every error of
 * `perform`. A failed request may be repeated with its key at once.
 */
export type Idempotency = <Reply extends Answered, Id extends string>(
  asked: Asked,
  work: Work<Reply, Id>,
) => Promise<Reply>;

/** {@link Idempotency} for the current request. */
export type Idempotent = <Reply extends Answered, Id extends string>(work: Work<Reply, Id>) => Promise<Reply>;

/** Longer than any request can run: the HTTP server and every request on the bus time out earlier. */
const runningMs = 10_000;

/** A claimed key may expire before its record is read, and then it can be claimed again. */
const maxTries = 2;

/** Keeps only `data`: secrets are in other fields, and only the first response contains them. */
const withoutSecrets = (body: unknown): unknown =>
  typeof body === "object" && body !== null && "data" in body ? { data: body.data } : {};

type Deps = {
  readonly keys: KeyShare;
  readonly records: KeyRecords;
  readonly now: () => Date;
};

export const createIdempotency = ({ keys, records, now }: Deps): Idempotency => {
  /** The response of an earlier attempt. Undefined when it was not performed, or is still running. */
  const replay = async <Reply extends Answered>(
    request: KeyedRequest,
    record: IdempotencyRecord,
    { earlier }: Work<Reply>,
  ): Promise<Reply | undefined> => {
    const headers = { "idempotent-replayed": "true" };
    if (earlier === undefined) return record.answer && { ...(record.answer as Reply), headers };
    const attempt = attemptOf(record);
    const known = records.wasPerformed(request, record.id) || (await earlier.wasPerformed(attempt));
    return known ? { ...(await earlier.rebuild(attempt)), headers } : undefined;
  };

  /** An accepted request stays accepted, even if it would be refused now. */
  const replayOrThrow =
    <Reply extends Answered>(request: KeyedRequest, work: Work<Reply>) =>
    async (refusal: unknown): Promise<Reply> => {
      if (!(refusal instanceof HeraldError) || errors[refusal.code].status >= 500) throw refusal;
      const earlier = (await records.read(request))?.value;
      const reply = earlier?.body === request.body ? await replay(request, earlier, work) : undefined;
      if (reply === undefined) throw refusal;
      return reply;
    };

  /** Performs the attempt of a record, and records the result if a repeat could not look it up. */
  const run = async <Reply extends Answered>(
    request: KeyedRequest,
    record: IdempotencyRecord,
    { perform, earlier }: Work<Reply>,
  ): Promise<Reply> => {
    try {
      const reply = await perform(attemptOf(record));
      if (earlier !== undefined) {
        records.setPerformed(request, record.id);
        return reply;
      }
      const answer = { status: reply.status, body: withoutSecrets(reply.body) };
      // The stored response counts too: it may be many times as long as its key.
      const ttlMs = keys.use(request.owner, Buffer.byteLength(JSON.stringify(answer)));
      // Without room for the response, a repeat is performed again, and its ids make that harmless.
      if (ttlMs === 0) await records.note({ request, record: { ...record, released: true } });
      else await records.note({ request: withShorterTtl(request, ttlMs), record: { ...record, answer } });
      return reply;
    } catch (error) {
      const released = records.release({ request, record });
      // While the bus is unavailable, waiting for the record would only delay the response.
      if (!hasCode(error, "bus-unavailable")) await released;
      throw error;
    }
  };

  /**
   * Handles a request whose key is claimed by a completed, running or interrupted attempt. `failed`: its tries that are known to have ended.
   * Undefined when the key has expired.
   */
  const retry = async <Reply extends Answered>(
    request: KeyedRequest,
    work: Work<Reply>,
    failed: readonly string[],
  ): Promise<Reply | undefined> => {
    const at = now().getTime();
    const found = await records.read(request);
    if (found === undefined) return undefined;
    const { value: earlier, revision } = found;
    if (earlier.body !== request.body) throw keyReused("was used with another body; use a new key");
    const reply = await replay(request, earlier, work).catch((error: unknown) => {
      // Whether it was performed is not known, so it is performed again: its ids make that harmless.
      if (!isUnavailable(error)) throw error;
    });
    if (reply !== undefined) return reply;
    const hasEnded = earlier.released === true || isTryOf(earlier, failed);
    if (!hasEnded && at - (earlier.triedAt ?? earlier.at) < runningMs) throw inProgress();
    const { released: _, ...record } = { ...earlier, triedAt: at };
    if (!(await records.update({ request, record }, revision))) throw inProgress();
    return run(request, record, work);
  };

  /** Undefined when the key is already claimed. */
  const runFirst = async <Reply extends Answered>(
    request: KeyedRequest,
    { id, at }: Attempt,
    work: Work<Reply>,
  ): Promise<Reply | undefined> => {
    if (work.performFirst) return work.performFirst({ at, key: request }).catch(replayOrThrow(request, work));
    const record = { body: request.body, id, at: at.getTime() };
    const [mine] = await records.create([{ request, record }]);
    return mine ? run(request, record, work) : undefined;
  };

  const idempotency = async <Reply extends Answered>(
    { key, owner, route, body }: Asked,
    work: Work<Reply>,
  ): Promise<Reply> => {
    const at = now();
    const id = work.newId?.(at) ?? "";
    const place = digest(JSON.stringify([owner, route, key]));
    const request = { place, owner, body: digest(JSON.stringify(body) ?? "") };
    try {
      await work.check?.({ id, at });
    } catch (refusal) {
      return replayOrThrow(request, work)(refusal);
    }
    // No other request may claim the key while this one runs.
    const ttlMs = keys.use(owner, keyBytes, runningMs);
    const kept = ttlMs === undefined ? request : { ...request, ttlMs };
    // The first of the tries below may claim the key again, and forgets it then.
    const failed = records.failedTries(kept);
    for (let tries = 0; tries < maxTries; tries++) {
      const reply = (await runFirst(kept, { id, at }, work)) ?? (await retry(kept, work, failed));
      if (reply !== undefined) return reply;
    }
    throw inProgress();
  };
  // An attempt's id is always one that the work's own newId made.
  return idempotency as Idempotency;
};

/** The shorter of two lifetimes; undefined stands for the longest. */
const withShorterTtl = (request: KeyedRequest, ttlMs: number | undefined): KeyedRequest =>
  ttlMs === undefined ? request : { ...request, ttlMs: Math.min(ttlMs, request.ttlMs ?? ttlMs) };

const attemptOf = ({ id, at, batch }: IdempotencyRecord): Attempt => ({ id, at: new Date(at), batch });

const inProgress = (): HeraldError =>
  new HeraldError("request-in-progress", "Idempotency-Key: the first request with this key is still running", {
    retryAfterSeconds: 1,
  });
