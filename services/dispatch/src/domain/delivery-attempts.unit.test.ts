import { describe, expect, test } from "vitest";
import { deliveryAttempts, type Step } from "./delivery-attempts.ts";

const at = (minute: number) => new Date(Date.UTC(2030, 0, 31, 9, minute));
const iso = (minute: number) => at(minute).toISOString();
const settled = (minute: number, result: Partial<Extract<Step, { kind: "settled" }>["result"]>): Step => ({
  kind: "settled",
  at: at(minute),
  result: { status: "deferred", attempts: 1, possibleRepeat: false, ...result },
});

describe("the attempts in a ledger", () => {
  test("are none of a device that is in no row", () => expect(deliveryAttempts([])).toEqual({ attempts: [] }));

  test("are each row's answer, in order, up to the last", () => {
    const steps = [
      settled(0, { providerReason: "503" }),
      settled(1, { attempts: 2, possibleRepeat: true, providerReason: "no answer" }),
      settled(2, { attempts: 2, possibleRepeat: true }),
      settled(3, { attempts: 2, possibleRepeat: true, providerReason: "403 InvalidProviderToken" }),
      settled(4, {
        attempts: 3,
        possibleRepeat: true,
        status: "failed",
        reason: "unregistered",
        providerReason: "410",
      }),
    ];
    expect(deliveryAttempts(steps).attempts).toEqual([
      { attempt: 1, at: iso(0), outcome: "deferred", provider_reason: "503", possible_repeat: false },
      { attempt: 2, at: iso(1), outcome: "unknown", provider_reason: "no answer", possible_repeat: true },
      { attempt: 3, at: iso(3), outcome: "paused", provider_reason: "403 InvalidProviderToken", possible_repeat: true },
      {
        attempt: 3,
        at: iso(4),
        outcome: "failed",
        reason: "unregistered",
        provider_reason: "410",
        possible_repeat: true,
      },
    ]);
  });

  test("include an attempt that was blocked, with the failure of its server", () => {
    const blocked = settled(1, { attempts: 0, blocked: true, providerReason: "cannot reach api.push.apple.com" });
    expect(deliveryAttempts([blocked]).attempts).toMatchObject([
      { attempt: 1, outcome: "held", provider_reason: "cannot reach api.push.apple.com" },
    ]);
    expect(deliveryAttempts([settled(1, { attempts: 0, blocked: true })]).attempts).toEqual([]);
  });

  test("have the provider's name for the message", () => {
    const step = { ...settled(0, { status: "accepted" }), providerId: "projects/p/messages/1" };
    expect(deliveryAttempts([step]).attempts).toMatchObject([{ outcome: "accepted", provider_id: step.providerId }]);
  });

  test("say when it is tried again, only while it waits", () => {
    const waiting: Step = { kind: "waiting", dueAt: at(9) };
    expect(deliveryAttempts([settled(0, {}), waiting]).nextAttemptAt).toEqual(at(9));
    expect(deliveryAttempts([settled(0, {}), waiting, settled(9, { status: "accepted" })])).not.toHaveProperty(
      "nextAttemptAt",
    );
  });

  test("have the one that is under way", () => {
    const { attempts } = deliveryAttempts([settled(0, {}), { kind: "started", at: at(1), repeat: true }]);
    expect(attempts[1]).toEqual({ attempt: 2, at: iso(1), outcome: "sending", possible_repeat: true });
  });
});
