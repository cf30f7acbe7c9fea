import { apnsToken } from "../harness/project.ts";

/** Bodies with more errors than an answer can list, by kind of error. `identification` renders a body of that route with a change. */
export const wrongBodies = (
  identification: (change: object) => string,
): Record<string, [route: string, body: string]> => {
  const entries = (count: number, of: (index: number) => unknown) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, of(index)]));
  const list = (count: number, of: unknown) => Array.from({ length: count }, () => of);
  const send = (notification: object) =>
    JSON.stringify({ notification: { title: "x", targets: ["all"], ...notification } });
  const longCondition = `condition:${"'a' in topics && ".repeat(50_000)}`;
  return {
    "unknown fields": ["PUT /api/v1/identification", identification(entries(9_000, () => 0))],
    "a wide metadata": ["PUT /api/v1/identification", identification({ metadata: entries(9_000, () => 0) })],
    "a deep metadata": [
      "PUT /api/v1/identification",
      identification({ metadata: { a: { b: { c: { d: list(40_000, []) } } } } }),
    ],
    "a metadata of keys that may not be": [
      "PUT /api/v1/identification",
      identification({ metadata: { a: list(12_000, { $ne: 0 }) } }),
    ],
    "one key 9,000 times": ["PUT /api/v1/identification", `{${list(9_000, '"platform":1').join(",")}}`],
    "wrong targets": ["POST /api/v1/notifications", send({ targets: list(100_000, "a b") })],
    "targets of another type": ["POST /api/v1/notifications", send({ targets: list(300_000, 0) })],
    "a target of 850 KB": ["POST /api/v1/notifications", send({ targets: [longCondition] })],
    "wrong data": ["POST /api/v1/notifications", send({ data: entries(80_000, () => 0) })],
    "230 conditions": ["POST /api/v1/notifications", send({ targets: list(230, longCondition.slice(0, 3_740)) })],
    "wrong locales": ["POST /api/v1/notifications", send({ localizations: entries(60_000, () => ({})) })],
    "unknown fields of a send": ["POST /api/v1/notifications", send(entries(80_000, () => 0))],
    "wrong devices": ["PUT /api/v1/topics/news/devices", JSON.stringify({ devices: list(120_000, "dev_") })],
    "wrong topics": [
      "POST /api/v1/devices",
      JSON.stringify({ device: { token: apnsToken(), platform: "ios", topics: list(120_000, "a b") } }),
    ],
  };
};
