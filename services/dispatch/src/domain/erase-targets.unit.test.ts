import {
  erasedTarget,
  newDeviceId,
  newNotificationId,
  newProjectId,
  type SendV1,
  targetKey,
  userKey,
} from "@herald/contracts";
import { expect, test } from "vitest";
import { type Erased, eraseFromSend, eraseTargets, isTargetOf } from "./erase-targets.ts";

const at = new Date();
const projectId = newProjectId(at);
const [mine, other] = [newDeviceId(at), newDeviceId(at)];
const user: Erased = { projectId, key: userKey(projectId, "ann"), at };
const phone: Erased = { ...user, devices: [mine], tokens: [targetKey(projectId, "token:t1")] };

test("a user is erased by the user's targets, and a device by its id in both forms and by its token", () => {
  const theirs = (erased: Erased) =>
    ["user:ann", "user:bob", mine, `device:${mine}`, `device:${other}`, "token:t1", "token:t2", "all"].filter(
      isTargetOf(erased),
    );
  expect(theirs(user)).toEqual(["user:ann"]);
  expect(theirs(phone)).toEqual([mine, `device:${mine}`, "token:t1"]);
});

test("content that was only for them is erased, that of others stays, and a list keeps its kind", () => {
  const content = { title: "For Ann", targets: [mine, "token:t1"] };
  expect(eraseTargets(content, phone)).toEqual({
    content: { title: "[erased]", targets: [erasedTarget, erasedTarget] },
    isErased: true,
  });
  expect(eraseTargets({ ...content, targets: [mine, other] }, phone)).toEqual({
    content: { title: "For Ann", targets: [erasedTarget, other] },
    isErased: false,
  });
  const list = { title: "{{ x }}", targets: [], recipients: { kind: "user", lines: 1 } } as const;
  expect(eraseTargets({ ...list, targets: [] }, user)).toMatchObject({ isErased: false, content: list });
  expect(eraseTargets({ ...list, targets: [] }, user, true).content).toEqual({ ...list, title: "[erased]" });
});

test("a send to a list loses their lines, and its texts when no other line is left", () => {
  const send = (keys: readonly string[], kind: "user" | "device" | "token") =>
    ({
      projectId,
      notificationId: newNotificationId(at),
      content: { title: "{{ x }}", targets: [], recipients: { kind, lines: keys.length } },
      personal: { texts: {}, locale: "en", values: { x: "secret" } },
      recipients: [keys.map((key, n) => ({ n: n + 1, key, values: { x: "secret" } }))],
    }) as unknown as SendV1;
  for (const [keys, kind, erased] of [
    [["ann"], "user", user],
    [[mine], "device", phone],
    [["t1"], "token", phone],
  ] as const) {
    expect(JSON.stringify(eraseFromSend(send(keys, kind), erased))).not.toContain("secret");
    const [left] = eraseFromSend(send([...keys, "bob"], kind), erased).recipients ?? [];
    expect(left).toEqual([
      { n: 1, key: "", values: {} },
      { n: 2, key: "bob", values: { x: "secret" } },
    ]);
  }
});
