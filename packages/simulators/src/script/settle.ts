import type { Exchange, Reply } from "../exchange.ts";
import type { Attempt, Broken } from "../push-log.ts";
import { type Rule, resetCode } from "./rule.ts";

interface Settlement {
  /** What the script says about this request, if anything. */
  readonly rule: Rule | undefined;
  /** What the provider would answer by itself. */
  readonly natural: Reply;
  /** The provider's answer for a rule that has a status. */
  readonly scripted: (rule: Rule, status: number) => Reply;
  readonly exchange: Exchange;
  /** Called once, when the request is answered or broken. */
  readonly record: (answered: Pick<Attempt, "status" | "reason" | "broken">) => void;
  readonly after: (ms: number, action: () => void) => void;
}

/** Answers one request as the script says. */
export function settle({ rule, natural, scripted, exchange, record, after }: Settlement): void {
  const recordAs = ({ status, reason }: Reply, broken?: Broken) =>
    record({ status: broken ? null : status, reason, broken });
  if (rule === undefined) {
    recordAs(natural);
    exchange.answer(natural);
    return;
  }
  const act = () => {
    const reply = rule.status === undefined ? natural : scripted(rule, rule.status);
    const { rst } = rule;
    if (rule.hang === true) {
      recordAs(reply, "hang");
    } else if (rst !== undefined) {
      recordAs(reply, "rst");
      breakOff(rule, reply, exchange, () => exchange.reset(resetCode(rst)));
    } else if (rule.closeSocket === true) {
      recordAs(reply, "closed");
      breakOff(rule, reply, exchange, () => exchange.dropConnection());
    } else {
      recordAs(reply);
      exchange.answer(reply);
    }
  };
  if (rule.delayMs === undefined) act();
  else after(rule.delayMs, act);
}

const breakOff = (rule: Rule, reply: Reply, exchange: Exchange, action: () => void) => {
  if (rule.status === undefined) action();
  else exchange.begin(reply, action);
};
