import { handleRequest, type RequestListener } from "@herald/bus";
import {
  adviceOn,
  type DeliveryReason,
  deliveryReasons,
  newDeviceId,
  newNotificationId,
  platformOf,
  providerProblems,
  providerRequests,
  type Recipient,
  type TestedPush,
  type TestPush,
  vapidKeyId,
} from "@herald/contracts";
import { withTimeout } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { type Outcome, refusalText } from "../domain/outcome.ts";
import { refusalAdvice } from "../domain/refusal-advice.ts";
import { requireRunning } from "../project-rules.ts";
import { findProvider } from "./providers.ts";

/** Less than the timeout of a request between services. */
const answerMs = 4_000;
/** After it the connection is closed, which ends at once what was not sent, with the reason. */
const reasonMs = 250;
const lifetimeMs = 60_000;

type TestPushDeps = Pick<Deps, "bus" | "connect" | "credentials" | "log" | "now" | "openTokens" | "rules">;

/**
 * Sends one push to a token that an operator names. It uses its own connection and has no ledger row: it neither waits for a
 * paused provider nor changes the provider's recorded state.
 */
export const handleTestPush = ({
  bus,
  credentials,
  connect,
  openTokens,
  rules,
  now,
  log,
}: TestPushDeps): RequestListener =>
  handleRequest(bus, providerRequests.test, async ({ projectId, provider, push }) => {
    await requireRunning(rules, projectId);
    const client = connect(provider, await credentials.open(await findProvider(credentials, projectId, provider)));
    try {
      const at = now();
      const { platform = platformOf[provider] } = push;
      const notificationId = newNotificationId(at);
      const send = client.prepare({
        projectId,
        notificationId,
        content: { title: "Herald test", body: "This project's settings work.", targets: [], ttl: lifetimeMs / 1_000 },
        expiresAt: new Date(at.getTime() + lifetimeMs),
        platform,
        lane: "direct",
      });
      const device = recipientOf(push, at);
      const openToken = openTokens.signer({ projectId, notificationId, platform }, at)(device.id);
      const answer = send(device, openToken);
      if (await withTimeout(answerMs, answer)) return view(await answer);
      close();
      return (await withTimeout(reasonMs, answer)) ? lateView(await answer) : view(noAnswer);
    } finally {
      close();
    }

    /** In the background: closing waits for an open request. */
    function close(): void {
      client
        .close()
        .catch((err: unknown) => log.warn({ err, provider }, "the connection of a test push did not close"));
    }
  });

const lateView = (outcome: Outcome): TestedPush =>
  outcome.kind === "deferred" && outcome.problem === undefined
    ? {
        result: "not-reached",
        detail: `no connection within ${answerMs / 1_000} s. ${providerProblems["connection-timeout"]}`,
      }
    : view(outcome);

const recipientOf = ({ token, environment, token_kind, keys }: TestPush, now: Date): Recipient => {
  const { vapid_key, ...subscription } = keys ?? {};
  return {
    id: newDeviceId(now),
    token,
    tokenAt: now.getTime(),
    ...(environment && { environment }),
    ...(token_kind && { tokenKind: token_kind }),
    ...(keys && { keys: subscription as Recipient["keys"] }),
    ...(vapid_key !== undefined && { vapidKeyId: vapidKeyId(vapid_key) }),
  };
};

const noAnswer: Outcome = { kind: "unknown", providerReason: `no answer within ${answerMs / 1_000} s` };

const view = (outcome: Outcome): TestedPush => {
  if (outcome.kind === "accepted")
    return {
      result: "accepted",
      ...(outcome.providerId === undefined ? {} : { provider_id: outcome.providerId }),
      detail:
        "The provider accepted the push. If the device does not show it, check the app's permission and its network.",
    };
  const providerReason = outcome.kind === "misconfigured" ? refusalText(outcome) : outcome.providerReason;
  const said = providerReason === "" ? {} : { provider_reason: providerReason };
  return { ...refusal(outcome), ...said };
};

/** In place of what Herald does with a device whose token is refused: a test push has no device. */
const tokenAdvice: Partial<Record<DeliveryReason, string>> = {
  "token-invalid":
    "The provider does not recognise this token: check that it is whole, and from the app and the environment that the settings name.",
  "endpoint-forbidden": "Herald may not send to this endpoint: it must be an https URL of a public host.",
};

/** Why the provider did not accept the push. */
const refusal = (outcome: Exclude<Outcome, { kind: "accepted" }>): Pick<TestedPush, "result" | "detail"> => {
  switch (outcome.kind) {
    case "unregistered":
      return {
        result: "token-refused",
        detail: "The provider says that this token is no longer valid: use a new one.",
      };
    case "rejected": {
      const { reason, providerReason, tokenMismatch } = outcome;
      const detail = adviceOn(providerReason) ?? tokenAdvice[reason] ?? deliveryReasons[reason];
      // Apple's word for the token that the project signs, which is no token of a device.
      if (providerReason === "BadJwtToken") return { result: "credential-refused", detail };
      return { result: tokenMismatch || reason === "token-invalid" ? "token-refused" : "message-refused", detail };
    }
    case "misconfigured":
      return {
        result: "credential-refused",
        detail: `The provider refuses the project's credential. ${refusalAdvice(refusalText(outcome))}`,
      };
    case "deferred":
      return outcome.problem
        ? { result: "not-reached", detail: outcome.problem.detail }
        : { result: "try-later", detail: "The provider cannot take the push now. Try again in a minute." };
    case "unknown":
      return {
        result: "no-answer",
        detail:
          "The push was sent and no answer came: it may have arrived. Check the network between dispatch and the provider.",
      };
  }
};
