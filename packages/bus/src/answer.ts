import { errors, headerNames, type QuestionContract, type Reply } from "@herald/contracts";
import { describeIssues, failSpan, HeraldError, withRequestId } from "@herald/kit";
import type { Msg } from "@nats-io/transport-node";
import type { z } from "zod";
import { type Bus, type Connection, connectionOf } from "./connect.ts";
import { sendReply } from "./long-reply.ts";
import { withRemoteSpan } from "./middleware/trace.ts";
import { parseJson } from "./parse-json.ts";
import { createSlots } from "./slots.ts";

export type AnswerContext = { readonly requestId?: string };

export type Answering = {
  /** Takes no further question and resolves when all that were taken are answered. */
  stop(): Promise<void>;
};

/** How many questions of one kind are worked on at a time: past that a database only gets slower. */
const concurrency = 64;
/** Who waits behind so many would be answered after they gave up. */
const waitingLimit = 2_000;

/**
 * Answers a question as one of the service's queue group. A HeraldError goes back as it is; anything else is logged
 * and goes back as `internal`, without its words.
 */
export const answer = <Request extends z.ZodType, Answer extends z.ZodType>(
  bus: Bus,
  question: QuestionContract<Request, Answer>,
  handle: (data: z.output<Request>, context: AnswerContext) => Promise<z.input<Answer>>,
): Answering => {
  const connection = connectionOf(bus);
  const slots = createSlots(concurrency);
  const open = new Set<Promise<void>>();

  const reply = async (msg: Msg): Promise<Reply> => {
    if (slots.waiting() >= waitingLimit)
      throw new HeraldError("service-away", "too many questions", { retryAfterSeconds: 1 });
    await slots.acquire();
    try {
      const request = question.request.safeParse(readJson(msg));
      if (!request.success)
        throw new HeraldError("schema", describeIssues(request.error, { schema: question.request }), {
          cause: request.error,
        });
      const requestId = msg.headers?.get(headerNames.requestId) || undefined;
      const context: AnswerContext = requestId === undefined ? {} : { requestId };
      const work = () => handle(request.data as z.output<Request>, context);
      const result = await (requestId === undefined ? work() : withRequestId(requestId, work));
      return { answer: question.answer.parse(result) };
    } finally {
      slots.release();
    }
  };

  const serve = (msg: Msg): Promise<void> =>
    withRemoteSpan(`answer ${question.name}`, "server", [msg.headers], async (span) => {
      try {
        sendReply(connection, question.service, msg, await reply(msg));
      } catch (error) {
        failSpan(span, error);
        sendReply(connection, question.service, msg, { error: explain(connection, question, error) });
      }
    });

  const subscription = connection.nc.subscribe(question.subject, {
    queue: question.service,
    callback: (error, msg) => {
      if (error) {
        connection.log.error({ err: error, question: question.name }, "questions are not received");
        return;
      }
      const serving = serve(msg).catch((err: unknown) =>
        connection.log.error({ err, question: question.name }, "no reply sent"),
      );
      open.add(serving);
      void serving.finally(() => open.delete(serving));
    },
  });

  return {
    async stop() {
      if (connection.connected) await subscription.drain().catch(() => subscription.unsubscribe());
      else subscription.unsubscribe();
      await Promise.all(open);
    },
  };
};

const readJson = (msg: Msg): unknown => {
  try {
    return parseJson(msg.data);
  } catch (cause) {
    throw new HeraldError("schema", "the request is not JSON", { cause });
  }
};

const explain = (
  { log }: Connection,
  { name }: QuestionContract,
  error: unknown,
): Extract<Reply, { error: unknown }>["error"] => {
  if (!(error instanceof HeraldError)) {
    log.error({ err: error, question: name }, "a question failed");
    return { code: "internal", messages: ["Herald failed to answer"] };
  }
  const { code, messages, retryAfterSeconds } = error;
  if (errors[code].log !== "info") log[errors[code].log]({ err: error, question: name, code }, "a question failed");
  return { code, messages: [...messages], ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) };
};
