import type { GroupedSend } from "@herald/contracts";
import { currentRequestId, inSpan, withRequestId } from "@herald/kit";
import { type Context, context, propagation, ROOT_CONTEXT } from "@opentelemetry/api";

/** The request that a part of a message belongs to, where one message carries parts of several requests. */
export type Origin = NonNullable<GroupedSend["origin"]>;

/** The request id and trace of what is running. */
export const currentOrigin = (): Origin => {
  const requestId = currentRequestId();
  const carrier: { traceparent?: string } = {};
  propagation.inject(context.active(), carrier);
  const { traceparent } = carrier;
  return { ...(requestId === undefined ? {} : { requestId }), ...(traceparent === undefined ? {} : { traceparent }) };
};

/** The trace that a part of a message continues. */
export const contextOf = ({ traceparent }: Origin): Context =>
  traceparent === undefined ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, { traceparent });

/** Runs `work` under the request id of its origin, in a consumer span that continues its trace. */
export const fromOrigin = <Result>(name: string, origin: Origin = {}, work: () => Promise<Result>): Promise<Result> => {
  const { requestId } = origin;
  const inside = () => inSpan(name, { kind: "consumer", parent: contextOf(origin) }, work);
  return requestId === undefined ? inside() : withRequestId(requestId, inside);
};
