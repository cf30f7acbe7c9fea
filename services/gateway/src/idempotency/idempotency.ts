import { errors, type IdempotencyRecord } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { digest, type KeyedRequest, type KeyRecords, keyReused } from "./key-records.ts";
import { type KeyShare, keyBytes } from "./key-share.ts";

/** What every try of one request shares, so that a repeat does what the first began. */
export type Attempt = {
  readonly id: string;
  readonly at: Date;
  /** What an earlier try accepted of several notifications. */
  readonly batch?: IdempotencyRecord["batch"];
};

/** A request that nobody tried before, as far as is known. */
export type FirstTry = {
  readonly at: Date;
  /** Absent: every request is one of its own. */
  readonly key?: KeyedRequest;
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

type Tries<Reply extends Answered> = {
  /** Does what the request is for; again for a repeat of a try that broke off. */
  readonly perform: (attempt: Attempt) => Promise<Reply>;
  /** Makes the answer again from the request alone. Without it the answer's `data` is kept, never what stands beside it. */
  readonly rebuildResponse?: (attempt: Attempt) => Reply | Promise<Reply>;
};

/** How a request is carried out. */
export type Work<Reply extends Answered> = Tries<Reply> &
  (
    | {
        readonly newId: (now: Date) => string;
        /** Throws what refuses the request, so that it does not use up its key. `perform` throws the same. */
        readonly check?: (attempt: Attempt) => unknown;
      }
    | {
        /**
         * Does what the request is for and takes its key, together with others of the same moment; notes the answer too. Undefined where
         * the key is taken. What it refuses with a 4xx has used up no key.
         */
        readonly performFirst: (first: FirstTry) => Promise<Reply | undefined>;
      }
  );

/**
 * Carries a request out once for each Idempotency-Key. Throws idempotency-key-reused, request-in-progress, bus-unavailable, and
 * whatever `perform` throws; a request that failed may be tried again under its key at once.
 */
export type Idempotency = <Reply extends Answered>(asked: Asked, work: Work<Reply>) => Promise<Reply>;

/** {@link Idempotency}, for a request that is known. */
export type Idempotent = <Reply extends Answered>(work: Work<Reply>) => Promise<Reply>;

/** Older than any request that is still running: the HTTP server and every question give up before. */
const runningMs = 10_000;

/** A key that was taken may be free when its record is read: its time has ended. */
const maxTries = 2;

/** Only `data` is kept: a secret stands beside it, and is shown once. */
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

  /** What was accepted once stays so, even where it would be refused by now. */
  const replayOrThrow =
    <Reply extends Answered>(request: KeyedRequest, work: Tries<Reply>) =>
    async (refusal: unknown): Promise<Reply> => {
      if (!(refusal instanceof HeraldError) || errors[refusal.code].status >= 500) throw refusal;
      const earlier = (await records.read(request))?.value;
      if (earlier?.body !== request.body || earlier.answer === undefined) throw refusal;
      return replay(earlier, work);
    };

  /** Carries out what the record says, and notes what comes of it. */
  const run = async <Reply extends Answered>(
    request: KeyedRequest,
    record: IdempotencyRecord,
    { perform, rebuildResponse }: Tries<Reply>,
  ): Promise<Reply> => {
    try {
      const reply = await perform(attemptOf(record));
      const body = rebuildResponse === undefined ? { body: withoutSecrets(reply.body) } : {};
      const answer = { status: reply.status, ...body };
      // What is kept with a key weighs, too: an answer may have many times the bytes of its key.
      const ttlMs =
        rebuildResponse === undefined ? keys.use(request.owner, Buffer.byteLength(JSON.stringify(answer))) : undefined;
      await records.note({ request: withShorterTtl(request, ttlMs), record: { ...record, answer } });
      return reply;
    } catch (error) {
      const noted = records.note({ request, record: { ...record, released: true } });
      // With the bus unavailable the note would only hold up the answer.
      if (!(error instanceof HeraldError && error.code === "bus-unavailable")) await noted;
      throw error;
    }
  };

  /** A request whose key is taken: answered before, still running, or broken off. Undefined where the key's time has ended. */
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

  /** Undefined where the key is taken. */
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
      // Without a key none is taken.
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
    // Until it is answered, nobody else may take it up.
    const kept = ttlMs === undefined ? request : { ...request, ttlMs: Math.max(ttlMs, runningMs) };
    for (let tries = 0; tries < maxTries; tries++) {
      const reply = (await runFirst(kept, { id, at }, work)) ?? (await repeat(kept, work));
      if (reply !== undefined) return reply;
    }
    throw inProgress();
  };
};

/** The shorter of two lifetimes, where undefined is the longest. */
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
