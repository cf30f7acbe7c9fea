import type { AskedRules, NotificationContent, NotificationId, ProjectId, Recipient } from "@herald/contracts";
import { askedRulesOf, rulesOfSend, type SendRules } from "@herald/rules";
import type { Deps } from "../deps.ts";
import { windowStart } from "../domain/cap-window.ts";
import { createEvaluateDevice, packRuleResults, type RuleResult, type RuleResults } from "../domain/rule-results.ts";
import { isDelayOver, type Sendable, type Skips } from "../domain/settle-row.ts";
import { subjectOf } from "../stores/cap-store.ts";

/** The notification of the devices. */
type Sent = {
  readonly _id: NotificationId;
  readonly projectId: ProjectId;
  readonly expiresAt: Date;
  readonly content: Pick<NotificationContent, "kind" | "silent" | "activity">;
};

/**
 * Evaluates the rules of a project for devices whose push is due, once for each device: the results are stored before the push.
 * Repeatable: a slot of a cap that an earlier call took is kept.
 */
export const createRuleEvaluator = ({ caps, rules, now }: Pick<Deps, "caps" | "rules" | "now">) => {
  /** Undefined: the project has no rules for such a send. */
  const rulesOf = (sent: Sent): SendRules | undefined => rulesOfSend(rules.byProject.get(sent.projectId), sent.content);

  /** Adds the cap to the results, for devices that would get the push. */
  const addCap = async (
    { _id: notificationId, projectId }: Sent,
    { kind, cap, zone }: SendRules,
    devices: readonly (Recipient | undefined)[],
    results: (RuleResult | undefined)[],
  ): Promise<void> => {
    if (!kind || !cap) return;
    const subjects = devices.map((device, at) => device && !results[at] && subjectOf(projectId, device));
    const wanted = subjects.flatMap((subject) => subject || []);
    if (wanted.length === 0) return;
    const window = windowStart(cap.per, zone, now());
    const taken = await caps.take({ projectId, notificationId, kind: kind.kind, cap, window, subjects: wanted });
    for (const [at, subject] of subjects.entries())
      if (subject && !taken.has(subject)) results[at] = { reason: "frequency-cap" };
  };

  return {
    /** What registry must add to the recipients of a send. */
    askedOf: (projectId: ProjectId, content: Sent["content"]): { readonly rules?: AskedRules } => {
      const asked = rulesOfSend(rules.byProject.get(projectId), content);
      return asked ? { rules: askedRulesOf(asked) } : {};
    },

    /** Whether rules apply to a send. */
    applies: (sent: Sent): boolean => rulesOf(sent) !== undefined,

    /** Before the first attempt. Devices in `skips` get nothing anyway. Undefined: all devices get the push. */
    evaluate: async (sent: Sent, devices: readonly Recipient[], skips?: Skips): Promise<RuleResults | undefined> => {
      await rules.loading;
      const asked = rulesOf(sent);
      if (asked === undefined) return undefined;
      const at = { now: now(), expiresAt: sent.expiresAt, devices: devices.length };
      const open = devices.map((device) => (skips?.has(device.id) ? undefined : device));
      const resultOf = createEvaluateDevice(asked, at);
      const results = open.map((device) => device && resultOf(device));
      await addCap(sent, asked, open, results);
      return packRuleResults(results);
    },

    /** After quiet hours have ended for some devices of a row: kind and cap are evaluated again. `skips`: what registry says now. */
    reevaluate: async (sent: Sent, devices: readonly Sendable[], skips: Skips): Promise<RuleResults | undefined> => {
      const asked = rulesOf(sent);
      if (asked === undefined) return undefined;
      const at = now();
      const open = devices.map((device) => (isDelayOver(device, at) ? device : undefined));
      const results = open.map((device): RuleResult | undefined => {
        const reason = device && skips.get(device.id);
        return reason && { reason };
      });
      await addCap(sent, asked, open, results);
      return packRuleResults(results);
    },
  };
};

export type RuleEvaluator = ReturnType<typeof createRuleEvaluator>;
