import { newDeviceId } from "@herald/contracts";
import { Binary } from "mongodb";
import { describe, expect, test } from "vitest";
import type { DeviceResult } from "../domain/result-table.ts";
import { type DeliveryDocument, packDeviceIds, packNames } from "./delivery-document.ts";
import { traceOf } from "./delivery-trace.ts";

const at = (minute: number) => new Date(Date.UTC(2030, 0, 31, 9, minute));
const iso = (minute: number) => at(minute).toISOString();
const device = newDeviceId(at(0));
/** A row of the device alone, on a platform whose provider names its messages. */
const rowOf = (row: Partial<DeliveryDocument>) => ({
  row: { platform: "android", notificationId: "ntf_1", deviceIds: packDeviceIds([device]), storedAt: at(0), ...row },
  index: 0,
});
const settled = (minute: number, result: Partial<DeviceResult>, more: Partial<DeliveryDocument> = {}) =>
  rowOf({
    state: "final",
    settledAt: at(minute),
    results: [{ status: "deferred", attempts: 1, possibleRepeat: false, ...result }],
    resultOf: new Binary(Uint8Array.of(0)),
    ...more,
  });
const trace = (...rows: ReturnType<typeof rowOf>[]) => traceOf(rows as Parameters<typeof traceOf>[0]);

describe("the attempts in a ledger", () => {
  test("are empty for a device in no row", () => expect(trace()).toEqual({ attempts: [] }));

  test("are each row's answer, in order, up to the last", () => {
    const rows = [
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
    expect(trace(...rows).attempts).toEqual([
      { attempt: 1, at: iso(0), outcome: "deferred", provider_reason: "503", possible_repeat: false },
      { attempt: 2, at: iso(1), outcome: "unknown", provider_reason: "no answer", possible_repeat: true },
      { at: iso(3), outcome: "paused", provider_reason: "403 InvalidProviderToken", possible_repeat: true },
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
    expect(trace(blocked).attempts).toEqual([
      { at: iso(1), outcome: "blocked", provider_reason: "cannot reach api.push.apple.com", possible_repeat: false },
    ]);
    expect(trace(settled(1, { attempts: 0, blocked: true })).attempts).toEqual([]);
  });

  test("include each try that the provider did not process, which uses no attempt, and a block of one reason once", () => {
    const limit = { attempts: 0, providerReason: "HTTP 429" };
    const rows = [
      settled(0, { ...limit, unprocessed: true }),
      settled(1, { ...limit, blocked: true }),
      settled(2, { ...limit, blocked: true }),
      settled(3, { ...limit, unprocessed: true }),
      settled(4, { status: "accepted" }),
    ];
    expect(trace(...rows).attempts.map(({ attempt, outcome, at }) => [attempt, outcome, at])).toEqual([
      [undefined, "deferred", iso(0)],
      [undefined, "blocked", iso(2)],
      [undefined, "deferred", iso(3)],
      [1, "accepted", iso(4)],
    ]);
  });

  test("begin with the delay of quiet hours; the next one is when they end for this device", () => {
    const decided = { list: [{ reason: "quiet-hours" as const, until: at(8) }], of: new Binary(Uint8Array.of(1)) };
    const delayed = settled(0, { attempts: 0, reason: "quiet-hours" }, { decided });
    const delay = { outcome: "delayed", reason: "quiet-hours", at: iso(0), until: iso(8) };
    const waiting = rowOf({
      state: "waiting",
      dueAt: at(5), // when another device of the row is due
      devices: [{ id: device, token: "t", tokenAt: 0, attempts: 0, repeat: false, notBefore: at(8).getTime() }],
    });
    expect(trace(delayed, waiting)).toMatchObject({ attempts: [delay], nextAttemptAt: at(8) });
    const later = settled(5, { attempts: 0, reason: "quiet-hours" });
    const accepted = settled(8, { status: "accepted" });
    expect(trace(delayed, later, accepted).attempts).toMatchObject([delay, { attempt: 1, outcome: "accepted" }]);
  });

  test.each([
    ["a text that could not be rendered", { status: "failed", reason: "render-failed", providerReason: "title: no" }],
    ["a kind that is switched off", { status: "skipped", reason: "muted" }],
    ["the end of its time to live", { status: "expired", reason: "expired", providerReason: "HTTP 503" }],
    ["a cancel", { status: "cancelled", reason: "cancelled" }],
  ] as const)("have no number where nothing was sent, like the delivery: %s", (_, result) => {
    const { attempts, delivery } = trace(settled(0, { ...result, attempts: 0 }));
    expect(delivery).toMatchObject({ status: result.status, attempts: 0 });
    expect(attempts).toMatchObject([{ outcome: result.status, reason: result.reason }]);
    expect(attempts[0]).not.toHaveProperty("attempt");
    const later = trace(settled(0, { attempts: 1, providerReason: "500" }), settled(1, { ...result, attempts: 1 }));
    expect(later.delivery).toMatchObject({ status: result.status, attempts: 1 });
    expect(later.attempts.map(({ attempt }) => attempt)).toEqual([1, undefined]);
  });

  test("have the end of quiet hours that outlast the notification, and none of quiet hours that skip it", () => {
    const skipped = { status: "skipped", reason: "quiet-hours", attempts: 0 } as const;
    const of = new Binary(Uint8Array.of(1));
    const outlast = settled(0, skipped, { decided: { list: [{ reason: "quiet-hours", end: at(9) }], of } });
    expect(trace(outlast).attempts).toMatchObject([{ outcome: "skipped", reason: "quiet-hours", until: iso(9) }]);
    const skip = settled(0, skipped, { decided: { list: [{ reason: "quiet-hours" }], of } });
    expect(trace(skip).attempts[0]).not.toHaveProperty("until");
  });

  test("have the provider's id of the message", () => {
    const row = settled(0, { status: "accepted" }, { providerIds: packNames(["projects/p/messages/1"]) ?? "" });
    expect(trace(row).attempts).toMatchObject([{ outcome: "accepted", provider_id: "projects/p/messages/1" }]);
  });

  test("have the time of the next one only while the device waits, in a row or in a child without a row", () => {
    const waiting = rowOf({ state: "waiting", dueAt: at(9) });
    expect(trace(settled(0, {}), waiting)).toMatchObject({ nextAttemptAt: at(9), delivery: { status: "pending" } });
    const child = { devices: [], dueAt: at(7), notBefore: at(7), paused: false };
    expect(trace(settled(0, {}, { state: "settled", child }))).toMatchObject({
      nextAttemptAt: at(7),
      delivery: { status: "pending", attempts: 1 },
    });
    expect(trace(settled(0, {}), waiting, settled(9, { status: "accepted" }))).not.toHaveProperty("nextAttemptAt");
  });

  test("include the one in progress", () => {
    const started = rowOf({
      state: "started",
      startedAt: at(1),
      devices: [{ id: device, token: "t", tokenAt: 0, attempts: 1, repeat: true }],
    });
    const { attempts } = trace(settled(0, {}), started);
    expect(attempts[1]).toEqual({ attempt: 2, at: iso(1), outcome: "sending", possible_repeat: true });
  });
});
