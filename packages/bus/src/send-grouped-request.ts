import { AsyncLocalStorage } from "node:async_hooks";
import type { Reply, RequestContract } from "@herald/contracts";
import { createGroupCommit, inSpan } from "@herald/kit";
import type { z } from "zod";
import { codeOf, notConnected } from "./bus-error.ts";
import { type Bus, type Connection, connectionOf } from "./connect.ts";
import { plainHeaders } from "./message-headers.ts";
import { currentOrigin } from "./origin.ts";
import { type GroupReplies, groupHeader } from "./request-group.ts";
import { budgetShare, requestTimeoutMs, roundTrip, sendRequest, unwrap } from "./send-request.ts";

/**
 * Each message costs both services and the broker more than what is in it. A request that is alone goes at once; under load those of a
 * few milliseconds share a message. No limit on groups under way: how much is done at a time the answering service decides.
 */
const groups = { most: 64, concurrent: 1, intervalMs: 4, groupBytes: 524_288 };

/** A service of an earlier version, which knows no groups, has answered: each is to be asked alone. */
class NoGroups extends Error {}

/** Sends requests in one message, and settles each by its own reply, or with the others when no more can come. */
const sendGroup = async (
  connection: Connection,
  { service, subject }: RequestContract,
  requests: readonly string[],
  replies: readonly PromiseWithResolvers<Reply>[],
): Promise<void> => {
  try {
    const endsAt = performance.now() + requestTimeoutMs;
    let next = { subject, body: `{"group":[${requests.join(",")}]}`, headers: plainHeaders({ [groupHeader]: "1" }) };
    for (;;) {
      const timeout = Math.max(1, endsAt - performance.now());
      const reply = (await roundTrip(connection, { service, ...next }, timeout)) as { answer?: GroupReplies };
      if (!reply.answer?.replies) throw new NoGroups();
      for (const [index, one] of reply.answer.replies) replies[index]?.resolve(one);
      const { rest } = reply.answer;
      if (rest === undefined) break;
      next = { subject: rest, body: "", headers: plainHeaders({}) };
    }
    throw new Error(`${service} left out a reply of a group`);
  } catch (error) {
    // Nothing changes for those that are settled.
    for (const { reject } of replies) reject(error);
  }
};

/**
 * {@link ask} for one contract that many ask at the same time: those of the same moment go in one message. Each is answered, fails and
 * keeps its request id, trace and project's share alone; it waits for no other one that takes long.
 */
export const sendGroupedRequest = <Request extends z.ZodType, Answer extends z.ZodType>(
  bus: () => Bus,
  contract: RequestContract<Request, Answer>,
): ((data: z.input<Request>) => Promise<z.output<Answer>>) => {
  type Asked = { readonly json: string; readonly alone: () => Promise<z.output<Answer>> };
  const budgetMs = Math.floor(requestTimeoutMs * budgetShare);

  const commit = createGroupCommit<Asked, Promise<z.output<Answer>>>(async (asked) => {
    const connection = connectionOf(bus());
    if (!connection.connected) throw notConnected();
    if (asked.length === 1) return asked.map(({ alone }) => alone());
    const requests = asked.map(({ json }) => json);
    const replies = asked.map(() => Promise.withResolvers<Reply>());
    void sendGroup(connection, contract, requests, replies);
    return replies.map(async ({ promise }, index) => {
      try {
        return unwrap(contract, await promise);
      } catch (error) {
        if (error instanceof NoGroups && asked[index]) return asked[index].alone();
        throw error;
      }
    });
  }, groups);

  return (data) => {
    const attributes = { "rpc.system": "nats", "rpc.service": contract.service, "rpc.method": contract.name };
    return inSpan(`ask ${contract.name}`, { kind: "client", attributes }, async () => {
      const { telemetry } = connectionOf(bus());
      const startedAt = performance.now();
      let isAlone = false;
      const observe = (outcome: string) => {
        if (isAlone) return;
        telemetry.requestDuration.record((performance.now() - startedAt) / 1000, { request: contract.name, outcome });
      };
      const runInContext = AsyncLocalStorage.snapshot();
      const alone = () => {
        isAlone = true;
        return runInContext(() => sendRequest(bus(), contract, data));
      };
      const json = JSON.stringify({ origin: currentOrigin(), budgetMs, data: contract.request.parse(data) });
      try {
        const answer = await commit({ json, alone }, Buffer.byteLength(json));
        observe("answered");
        return answer;
      } catch (error) {
        observe(codeOf(error));
        throw error;
      }
    });
  };
};
