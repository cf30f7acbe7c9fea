import type { Exchange, ProviderReply } from "../exchange.ts";
import type { Broken, PushAttempt, Rule } from "../types.ts";
import { knownAnswers } from "./known-answers.ts";
import { resetCode } from "./rule.ts";

interface Settlement {
  /** The script's rule for this request, if any. */
  readonly rule: Rule | undefined;
  /** The provider's answer without a rule. */
  readonly natural: ProviderReply;
  /** The provider's answer for a rule with a status, without the rule's own headers and body. */
  readonly scripted: (rule: Rule, status: number) => ProviderReply;
  readonly exchange: Exchange;
  /** Called once, when the request is answered or broken. */
  readonly record: (answered: Pick<PushAttempt, "status" | "reason" | "problem" | "broken">) => void;
}

const withExtras = (reply: ProviderReply, { headers, body }: Rule): ProviderReply => ({
  ...reply,
  headers: { ...reply.headers, ...headers },
  body: body ?? reply.body,
});

/** Answers one request as the script says. */
export function settleExchange({ rule: written, natural, scripted, exchange, record }: Settlement): void {
  const rule = written?.known ? { ...written, ...knownAnswers[written.known] } : written;
  const recordAs = ({ status, reason, problem }: ProviderReply, broken?: Broken) =>
    record({ status: broken ? null : status, reason, problem, broken });
  if (rule === undefined) {
    recordAs(natural);
    exchange.answer(natural);
    return;
  }
  const act = () => {
    const reply = rule.status === undefined ? natural : withExtras(scripted(rule, rule.status), rule);
    const { rst } = rule;
    const breakOff = (action: () => void) => (rule.status === undefined ? action() : exchange.begin(reply, action));
    if (rule.hang === true) {
      recordAs(reply, "hang");
    } else if (rst !== undefined) {
      recordAs(reply, "rst");
      breakOff(() => exchange.reset(resetCode(rst)));
    } else if (rule.closeSocket === true) {
      recordAs(reply, "closed");
      breakOff(() => exchange.dropConnection());
    } else {
      recordAs(reply);
      exchange.answer(reply);
    }
  };
  if (rule.delayMs === undefined) act();
  // The timer must not keep a stopped simulator alive.
  else setTimeout(act, rule.delayMs).unref();
}
