import { errors, type IdempotencyRecord } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { digest, type KeyedRequest, type KeyRecords, keyReused } from "./key-records.ts";
import { type KeyShare, keyBytes } from "./key-share.ts";

/** What all attempts of one request share, so that a repeat completes the first attempt. */
export type Attempt = {
  readonly id: string;
  readonly at: Date;
  /** The notifications of a batch that an earlier attempt accepted. */
  readonly batch?: IdempotencyRecord["batch"];
};

/** The first known attempt of a request. */
export type FirstTry = {
  readonly at: Date;
  /** Absent: the request is performed every time. */
  readonly key?: KeyedRequest;
};

type Answered = {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};

export type Asked = {
  /** Absent: the request is performed every time. */
  readonly key: string | undefined;
  /** The owner of the key: a project, or `admin`. */
  readonly owner: string;
  /** Method and path as they were sent. */
  readonly route: string;
  readonly body: unknown;
};

type Tries<Reply extends Answered> = {
  /** Performs the request. Called again for a repeat of an interrupted attempt. */
  readonly perform: (attempt: Attempt) => Promise<Reply>;
  /** Rebuilds the response from the request alone. Without it, the response's `data` is stored, and nothing beside it. */
  readonly rebuildResponse?: (attempt: Attempt) => Reply | Promise<Reply>;
};

/** How a request is performed. */
export type Work<Reply extends Answered> = Tries<Reply> &
  (
    | {
        readonly newId: (now: Date) => string;
        /** Throws the error that refuses the request before its key is claimed. `perform` throws the same. */
        readonly check?: (attempt: Attempt) => unknown;
      }
    | {
        /**
         * Performs the request, claims its key and records the response, grouped with other requests. Undefined when the key is already
         * claimed. A request refused with a 4xx leaves its key free.
         */
        readonly performFirst: (first: FirstTry) => Promise<Reply | undefined>;
      }
  );

/**
 * Performs a request once per Idempotency-Key. Throws idempotency-key-reused, request-in-progress, bus-unavailable, and every error of
 * `perform`. A failed request may be repeated with its key at once.
 */
export type Idempotency = <Reply extends Answered>(asked: Asked, work: Work<Reply>) => Promise<Reply>;

/** {@link Idempotency} for the current request. */
export type Idempotent = <Reply extends Answered>(work: Work<Reply>) => Promise<Reply>;

/** Longer than any request can run: the HTTP server and every request on the bus time out before. */
const runningMs = 10_000;

/** A claimed key may have expired when its record is read. */
const maxTries = 2;

/** Keeps only `data`: secrets stand beside it, and only the first response contains them. */
const withoutSecrets = (body: unknown): unknown =>
  typeof body === "object" && body !== null && "data" in body ? { data: body.data } : {};

type Deps = {
  readonly keys: KeyShare;
  readonly records: KeyRecords;
  readonly now: () => Date;
};

export const createIdempotency = ({ keys, records, now }: Deps): Idempotency => {
  const replay = async <Reply extends Answered>(record: IdempotencyRecord, work: Tries<Reply>): Promise<Reply> => {
    const headers = { "idempotent-replayed": "true" };
    const reply = work.rebuildResponse ? await work.rebuildResponse(attemptOf(record)) : (record.answer as Reply);
    return { ...reply, headers };
  };

  /** A request that was accepted stays accepted, even if it would be refused now. */
  const replayOrThrow =
    <Reply extends Answered>(request: KeyedRequest, work: Tries<Reply>) =>
    async (refusal: unknown): Promise<Reply> => {
      if (!(refusal instanceof HeraldError) || errors[refusal.code].status >= 500) throw refusal;
      const earlier = (await records.read(request))?.value;
      if (earlier?.body !== request.body || earlier.answer === undefined) throw refusal;
      return replay(earlier, work);
    };

  /** Performs the attempt of a record, and records the result. */
  const run = async <Reply extends Answered>(
    request: KeyedRequest,
    record: IdempotencyRecord,
    { perform, rebuildResponse }: Tries<Reply>,
  ): Promise<Reply> => {
    try {
      const reply = await perform(attemptOf(record));
      const body = rebuildResponse === undefined ? { body: withoutSecrets(reply.body) } : {};
      const answer = { status: reply.status, ...body };
      // A stored response counts too: it may have many times the bytes of its key.
      const ttlMs =
        rebuildResponse === undefined ? keys.use(request.owner, Buffer.byteLength(JSON.stringify(answer))) : undefined;
      await records.note({ request: withShorterTtl(request, ttlMs), record: { ...record, answer } });
      return reply;
    } catch (error) {
      const noted = records.note({ request, record: { ...record, released: true } });
      // While the bus is unavailable, waiting for the record would only delay the response.
      if (!(error instanceof HeraldError && error.code === "bus-unavailable")) await noted;
      throw error;
    }
  };

  /** Handles a request whose key is claimed: completed, still running, or interrupted. Undefined when the key has expired. */
  const repeat = async <Reply extends Answered>(
    request: KeyedRequest,
    work: Tries<Reply>,
  ): Promise<Reply | undefined> => {
    const at = now().getTime();
    const found = await records.read(request);
    if (found === undefined) return undefined;
    const { value: earlier, revision } = found;
    if (earlier.body !== request.body) throw keyReused("was used with another body; use a new key");
    if (earlier.answer !== undefined) return replay(earlier, work);
    if (earlier.released !== true && at - (earlier.triedAt ?? earlier.at) < runningMs) throw inProgress();
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
    if ("performFirst" in work) return work.performFirst({ at, key: request }).catch(replayOrThrow(request, work));
    const record = { body: request.body, id, at: at.getTime() };
    const [mine] = await records.create([{ request, record }]);
    return mine ? run(request, record, work) : undefined;
  };

  return async ({ key, owner, route, body }, work) => {
    const at = now();
    if (key === undefined) {
      if ("newId" in work) return work.perform({ id: work.newId(at), at });
      // Without a key, performFirst always returns a response.
      return (await work.performFirst({ at })) as Awaited<ReturnType<typeof work.perform>>;
    }
    const place = digest(JSON.stringify([owner, route, key]));
    const request = { place, owner, body: digest(JSON.stringify(body) ?? "") };
    const id = "newId" in work ? work.newId(at) : "";
    try {
      if ("newId" in work) work.check?.({ id, at });
    } catch (refusal) {
      return replayOrThrow(request, work)(refusal);
    }
    const ttlMs = keys.use(owner, keyBytes);
    // Until it is completed, no other request may claim the key.
    const kept = ttlMs === undefined ? request : { ...request, ttlMs: Math.max(ttlMs, runningMs) };
    for (let tries = 0; tries < maxTries; tries++) {
      const reply = (await runFirst(kept, { id, at }, work)) ?? (await repeat(kept, work));
      if (reply !== undefined) return reply;
    }
    throw inProgress();
  };
};

/** The shorter of two lifetimes; undefined is the longest. */
const withShorterTtl = (request: KeyedRequest, ttlMs: number | undefined): KeyedRequest =>
  ttlMs === undefined ? request : { ...request, ttlMs: Math.min(ttlMs, request.ttlMs ?? ttlMs) };

const attemptOf = ({ id, at, batch }: IdempotencyRecord): Attempt => ({
  id,
  at: new Date(at),
  ...(batch === undefined ? {} : { batch }),
});

const inProgress = (): HeraldError =>
  new HeraldError("request-in-progress", "Idempotency-Key: the first request with this key is still running", {
    retryAfterSeconds: 1,
  });
