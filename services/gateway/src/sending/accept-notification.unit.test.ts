import {
  maxTtlSeconds,
  type NotificationContent,
  newNotificationId,
  newProjectId,
  nowOrNeverMs,
  SendV1,
} from "@herald/contracts";
import { hasCode } from "@herald/kit";
import { describe, expect, test } from "vitest";
import { acceptedView, acceptNotification, parsedSend } from "./accept-notification.ts";

const at = new Date("2030-01-31T09:00:00.000Z");
const projectId = newProjectId(at);
const id = newNotificationId(at);
const after = (ms: number) => new Date(at.getTime() + ms).toISOString();
const day = 86_400_000;

const accept = (fields: Partial<NotificationContent> = {}, platforms: ("ios" | "android" | "web")[] = []) =>
  acceptNotification({
    projectId,
    id,
    at,
    notification: { title: "Hello", targets: ["all"], ...fields },
    platforms,
    openTokenBytes: 120,
  }).command;

const problemsOf = (work: () => unknown): readonly string[] => {
  try {
    work();
  } catch (error) {
    if (hasCode(error, "validation-failed")) return error.messages;
    throw error;
  }
  return [];
};

describe("a push type", () => {
  const push = (fields: Partial<NotificationContent>) => accept({ title: undefined, data: { a: "b" }, ...fields });

  test.each(["voip", "pushtotalk"] as const)("%s is sent now or never, unless the send says otherwise", (pushType) => {
    expect(push({ push_type: pushType })).toMatchObject({ content: { ttl: 0 }, expiresAt: after(nowOrNeverMs) });
    expect(push({ push_type: pushType, ttl: 60 })).toMatchObject({ content: { ttl: 60 }, expiresAt: after(60_000) });
  });

  test("other types live as long as other notifications", () => {
    const { content, expiresAt } = push({ push_type: "widgets" });
    expect(content).not.toHaveProperty("ttl");
    expect(expiresAt).toBe(after(maxTtlSeconds * 1000));
  });

  test("location needs a key", () => {
    const accepting = (apnsCertificate: boolean) => () =>
      acceptNotification({
        ...{ projectId, id, at, platforms: [], openTokenBytes: 120, apnsCertificate },
        notification: { push_type: "location", targets: ["all"] },
      });
    expect(problemsOf(accepting(true))).toEqual([
      "notification.push_type: `location` needs a key (.p8) in the APNs settings, which have a certificate",
    ]);
    expect(problemsOf(accepting(false))).toEqual([]);
  });
});

describe("when a notification is sent and when it expires", () => {
  test.each<[string, Partial<NotificationContent>, { sendAt?: string; expiresAt: string }]>([
    ["at once, with FCM's default time to live", {}, { expiresAt: after(maxTtlSeconds * 1000) }],
    ["with a time to live", { ttl: 60 }, { expiresAt: after(60_000) }],
    ["now or never", { ttl: 0 }, { expiresAt: after(nowOrNeverMs) }],
    ["in the past is now", { send_at: "2020-01-01T00:00:00Z", ttl: 60 }, { expiresAt: after(60_000) }],
    ["at this moment is now", { send_at: at.toISOString(), ttl: 60 }, { expiresAt: after(60_000) }],
    [
      "later, with an offset, living from then on",
      { send_at: "2030-01-31T11:00:00+01:00", ttl: 60 },
      { sendAt: after(3_600_000), expiresAt: after(3_660_000) },
    ],
    [
      "thirty days ahead",
      { send_at: after(30 * day), ttl: 1 },
      { sendAt: after(30 * day), expiresAt: after(30 * day + 1_000) },
    ],
  ])("%s", (_, fields, times) => {
    const command = accept(fields);
    expect({ sendAt: command.sendAt, expiresAt: command.expiresAt }).toEqual({ sendAt: undefined, ...times });
    expect(command.acceptedAt).toBe(at.toISOString());
    expect(SendV1.schema.parse(command)).toEqual(command);
    expect(acceptedView(command).status).toBe(times.sendAt === undefined ? "accepted" : "scheduled");
  });

  test("more than thirty days ahead is refused", () => {
    expect(problemsOf(() => accept({ send_at: after(30 * day + 1) }))).toEqual([
      "notification.send_at: must be at most 30 days ahead",
    ]);
  });
});

describe("the command", () => {
  test("contains the requested content", () => {
    const { content } = accept({ link_to: "/a", data: { a: "b" } });
    expect(content).toEqual({ title: "Hello", targets: ["all"], link_to: "/a", data: { a: "b" } });
  });

  test("is refused with all its problems at once", () => {
    const fields = {
      body: "x".repeat(4_000),
      data: { more: "x".repeat(200) },
      send_at: after(31 * day),
    };
    const problems = problemsOf(() => accept(fields, ["ios", "web"]));
    expect(problems).toHaveLength(3);
    expect(problems.map((problem) => problem.split(":")[0])).toEqual([
      "notification",
      "notification",
      "notification.send_at",
    ]);
    expect(problems.join()).toMatch(/for ios.*for web/);
  });

  test("is measured only for the platforms whose provider the project has", () => {
    const fields = { body: "x".repeat(4_000), data: { more: "x".repeat(200) } };
    expect(problemsOf(() => accept(fields))).toEqual([]);
    expect(problemsOf(() => accept(fields, ["ios"]))).toHaveLength(1);
  });
});

describe("a parsed send", () => {
  test.each<[string, Partial<SendV1>]>([
    ["a plain one", {}],
    ["one with characters of several bytes", { content: { title: 'Größe "12" 😀\u2028', targets: ["user:é"] } }],
    ["one with more fields", { sendAt: after(1), recipients: [[{ n: 1, key: "ü", values: { a: "}" } }]] }],
  ])("has the text and the size of its command: %s", (_, fields) => {
    const command = { ...accept(), ...fields };
    const { text, bytes, contentBytes } = parsedSend(command);
    const whole = `{"notificationId":"${id}",${text}}`;
    expect(JSON.parse(whole)).toEqual(command);
    expect(bytes).toBe(Buffer.byteLength(whole));
    expect(bytes).toBe(Buffer.byteLength(JSON.stringify(command)));
    expect(contentBytes).toBe(Buffer.byteLength(JSON.stringify(command.content)));
  });

  test.each<[boolean, Partial<NotificationContent>]>([
    [true, { targets: ["token:a", "user:b"] }],
    [false, { targets: ["all"] }],
    [false, { targets: ["token:a"], send_at: after(day) }],
  ])("is small: %s, with %j", (small, fields) => {
    expect(parsedSend(accept(fields)).small).toBe(small);
  });
});
