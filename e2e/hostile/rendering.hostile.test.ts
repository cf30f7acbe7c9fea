import { expectStatus, type HttpAnswer } from "@herald/testing";
import { expect } from "vitest";
import type { Content, Project } from "../harness/project.ts";
import { apnsToken } from "../harness/project.ts";
import { registerAll } from "../harness/register-all.ts";
import { payloadOf, wasAccepted } from "../harness/simulators.ts";
import { logOnFailure, type ServiceName, type System } from "../harness/system.ts";
import { cpuFor } from "./cpu.ts";
import { show } from "./figures.ts";
import { latencyDuring, maxTicks } from "./latency.ts";
import { memoryOf, peakMemory } from "./memory.ts";
import { scale } from "./scale.ts";
import { test } from "./shared-system.ts";
import { newToken } from "./world.ts";

let system: System;
test.beforeAll(({ system: shared }) => {
  system = shared;
});
logOnFailure(() => system);

/** What a text shows of a value of 4,000 characters in 195 outputs: three quarters of a megabyte. */
const output = "{{ x }}";
const endless = output.repeat(195);
const long = "x".repeat(4_000);

/** The memory that a service takes more than before while `work` runs, at most, in MB. */
const growthOf = async (service: ServiceName, work: () => Promise<unknown>): Promise<number> => {
  const before = await memoryOf(system, service);
  const peak = await peakMemory(system, service, work());
  return Math.max(peak, await memoryOf(system, service)) - before;
};

const preview = (project: Project, content: object, variables: object = {}): Promise<HttpAnswer> =>
  project.call("POST /templates/any/preview", { body: { preview: { content, variables } } });

/** Registers devices of one user, with metadata that each says of itself. */
const devicesOf = async (
  project: Project,
  user: string,
  count: number,
  metadata: (at: number) => Record<string, unknown>,
) => {
  const devices = Array.from({ length: count }, (_, at) => ({
    token: apnsToken(),
    platform: "ios" as const,
    user_id: user,
    metadata: metadata(at),
  }));
  await registerAll(project, devices);
  return devices;
};

/** A name in upper and lower case, differently for each number. */
const spelling = (name: string, number: number): string => {
  let bits = number;
  return [...name]
    .map((letter) => {
      if (!/[a-z]/i.test(letter)) return letter;
      const isUpper = bits % 2 === 1;
      bits = Math.floor(bits / 2);
      return isUpper ? letter.toUpperCase() : letter.toLowerCase();
    })
    .join("");
};

/** Latin letters enough for more spellings than anybody tries. */
const zone = "America/Argentina/ComodRivadavia";

test("different spellings of a time zone take none of dispatch's memory", async ({ task }) => {
  const project = await system.project("Zones");
  const devices = await devicesOf(project, "traveller", scale(1_500, 600), (at) => ({ tz: spelling(zone, at) }));
  const sends = scale(12, 8);
  const notification = {
    title: "{{ at | date: time: 'short', zone: device.metadata.tz }}",
    body: "{{ at | date: 'full', time: 'full', zone: device.metadata.tz }}",
    variables: { at: "2030-01-31T09:00:00Z" },
    targets: ["user:traveller"],
  };
  const grown = await growthOf("dispatch", async () => {
    for (let at = 0; at < sends; at++) {
      const { id } = await project.send(notification as unknown as Content);
      expect((await project.final(id, 120_000)).counts).toMatchObject({ accepted: devices.length });
    }
  });
  show(task, { spellings: devices.length, texts: 2 * sends * devices.length, "MB of dispatch": grown });
  expect(grown).toBeLessThan(70);
});

test("a small send that renders to megabytes takes no memory and is not sent", async ({ task }) => {
  const project = await system.project("Endless");
  const devices = await devicesOf(project, "many", scale(1_500, 300), () => ({}));
  const other = await system.project("Beside");
  const { device } = await other.register();
  const { id: known } = await other.send({ title: "Ordinary", targets: [device.id] });
  await other.final(known);
  const follow = system.simulators.follow();
  await follow();
  const notification = {
    title: endless,
    body: `${" ".repeat(2_700)}${endless}`,
    data: { a: endless },
    recipients: [{ target: "user:many", variables: { x: long } }],
  };
  const refused: number[] = [];
  const read = async () => {
    const answer = await other.call(`GET /notifications/${known}`);
    if (answer.status !== 200) refused.push(answer.status);
    return answer;
  };
  let counts = {};
  let failures = {};
  let reads = {};
  const grown = await growthOf("dispatch", async () => {
    const { p99, answered, ticks } = await latencyDuring(
      read,
      async () => {
        const { id } = await project.send(notification as unknown as Content);
        ({ counts, failures } = await project.final(id, 300_000));
      },
      system.services.analytics,
    );
    expect({ refused, isLate: ticks > maxTicks }).toEqual({ refused: [], isLate: false });
    reads = { "reads of a neighbour": answered, "p99 ms": p99 };
  });
  const pushed = await follow();
  show(task, {
    ...reads,
    "bytes of the send": JSON.stringify(notification).length,
    devices: devices.length,
    "MB of dispatch": grown,
    pushes: pushed.length,
  });
  expect(failures).toEqual({ "payload-too-large": devices.length });
  expect(counts).toMatchObject({ devices: devices.length, failed: devices.length });
  expect(pushed).toEqual([]);
  expect(grown).toBeLessThan(100);
});

test("a rendered push that is too large fails its device alone", async ({ task }) => {
  const project = await system.project("Limits", ["apns", "fcm", "webpush"]);
  const { endpoint, keys } = await system.simulators.subscribe();
  const addresses = [
    { platform: "ios" as const },
    { platform: "android" as const },
    { platform: "web" as const, token: endpoint, keys },
  ];
  const follow = system.simulators.follow();
  for (const address of addresses) {
    const { device } = await project.register(address);
    const short = await project.register(
      address.platform === "web"
        ? {
            platform: "web",
            ...(await system.simulators.subscribe().then((one) => ({ token: one.endpoint, keys: one.keys }))),
          }
        : { platform: address.platform },
    );
    await follow();
    const notification = {
      title: "Hi",
      body: output,
      data: { a: output, b: output },
      recipients: [
        { target: `device:${device.id}`, variables: { x: "x".repeat(1_500) } },
        { target: `device:${short.device.id}`, variables: { x: "short" } },
      ],
    };
    const { id } = await project.send(notification as unknown as Content);
    expect(await project.final(id)).toMatchObject({
      counts: { devices: 2, accepted: 1, failed: 1 },
      failures: { "payload-too-large": 1 },
    });
    const pushes = (await follow()).filter((push) => payloadOf(push).notification_id === id);
    expect(pushes.map(wasAccepted)).toEqual([true]);
  }
  show(task, { platforms: addresses.length });
});

/** A template whose texts format a time in as many spellings as fit, beginning with this one. */
const spelled = (first: number, texts: number, each: number) => ({
  data: Object.fromEntries(
    Array.from({ length: texts }, (_, text) => [
      `d${text}`,
      Array.from(
        { length: each },
        (_, at) => `{{ t | date: time: 'short', zone: '${spelling(zone, first + text * each + at)}' }}`,
      ).join(""),
    ]),
  ),
  title: "Spellings",
  variables: { t: { type: "datetime" } },
});

test("10,000 spellings of a time zone in previews take no memory", async ({ task }) => {
  const project = await system.project("Spellings");
  const [texts, each] = [4, 90];
  const previews = Math.ceil(10_000 / (texts * each));
  const grown = await growthOf("gateway", async () => {
    for (let at = 0; at < previews; at++) {
      const answer = await preview(project, spelled(at * texts * each, texts, each), { t: "2030-01-31T09:00:00Z" });
      expectStatus(answer, 200);
    }
  });
  show(task, { spellings: previews * texts * each, "MB of the gateway": grown });
  expect(grown).toBeLessThan(70);
});

/** The languages of a template that is compiled to less than 64 KiB. */
const perTemplate = 60;
/** A template in invented languages, each with a few styles of dates. */
const invented = (first: number) => ({
  title: "Languages",
  localizations: Object.fromEntries(
    Array.from({ length: perTemplate }, (_, at) => [
      `de-x-a${first + at}`,
      {
        body: ["full", "long", "medium", "short"]
          .map((style) => `{{t|date:'${style}'}}{{t|date:'${style}',time:'short'}}`)
          .join(""),
      },
    ]),
  ),
  variables: { t: { type: "datetime" } },
});

test("formats of thousands of invented languages take little memory", async ({ task }) => {
  const project = await system.project("Languages");
  const previews = scale(56, 20);
  const grown = await growthOf("gateway", async () => {
    for (let at = 0; at < previews; at++)
      expectStatus(await preview(project, invented(1_000 + at * perTemplate), { t: "2030-01-31T09:00:00Z" }), 200);
  });
  show(task, { formats: previews * perTemplate * 8, "MB of the gateway": grown });
  expect(grown).toBeLessThan(150);
});

test("previews count as dry runs, refused ones too", async ({ task }) => {
  const project = await system.project("Previews");
  const answers = [];
  for (let at = 0; at < 61; at++)
    answers.push(await preview(project, { title: at % 2 ? "fine" : "{{ x", variables: {} }));
  const last = answers.at(-1);
  expect(answers.slice(0, -1).map(({ status }) => status)).toEqual(
    Array.from({ length: 60 }, (_, at) => (at % 2 ? 200 : 422)),
  );
  expect([last?.status, last?.body.type]).toEqual([429, expect.stringContaining("quota-exceeded")]);
  show(task, { previews: answers.length, refused: 1 });
});

test("a preview of 33 KB costs no more than its parsing", async ({ task }) => {
  const project = await system.project("Costly");
  const localizations = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`de-x-a${at}`, { body: endless }]));
  const content = { title: "Costly", body: endless, localizations, variables: { x: { type: "string" } } };
  const rounds = scale(28, 14);
  const statuses = new Set<number>();
  const cpuOf = (x: string) =>
    cpuFor(system, "gateway", rounds, async () => {
      for (let at = 0; at < rounds; at++) statuses.add((await preview(project, content, { x })).status);
    });
  await preview(project, content, { x: "" });
  const parsing = await cpuOf("");
  const rendering = await cpuOf(long);
  show(task, {
    "bytes of a preview": JSON.stringify(content).length + long.length,
    "CPU ms without values": parsing,
    "CPU ms with long ones": rendering,
  });
  expect(statuses).toEqual(new Set([422]));
  expect(rendering).toBeLessThan(2 * parsing + 20);
});

test("no reason of a delivery quotes a value", async ({ task }) => {
  const project = await system.project("Reasons");
  const planted = "Ada-Lovelace-1815";
  const { device } = await project.register({ metadata: { secret: planted } });
  const shown = "device.metadata.secret";
  const texts = [
    `{{ ${shown} | date }}`,
    `{{ '2030-01-31' | date: zone: ${shown} }}`,
    `{{ '2030-01-31' | date: ${shown} }}`,
    `{{ ${shown} | number }}`,
    `{{ 1 | number: ${shown} }}{{ ${shown} | plural: other: 'x' }}`,
    `{{ 1 | currency: ${shown} }}`,
    `{{ ${shown} | currency: 'EUR' }}`,
  ];
  const reasons: string[] = [];
  for (const title of texts) {
    const { id } = await project.send({ title, variables: {}, targets: [device.id] } as unknown as Content);
    await project.final(id);
    for (const row of await project.deliveries(id)) reasons.push(row.provider_reason ?? "");
  }
  show(task, { texts: texts.length });
  expect(reasons.join("\n")).not.toContain(planted.slice(0, 5));
  expect(reasons.join("\n")).toContain("`device.metadata.secret`");
  expect(reasons).toHaveLength(texts.length);
});

const badLinks: readonly string[] = [
  "https://shop.example{{ x }}",
  "https://{{ x }}.example/",
  "https://shop.example:{{ x }}/",
  "https://{{ x }}@shop.example/",
  "https:{{ x }}",
  "https:/{{ x }}/a",
  "htt{{ x }}",
  "{{ x }}/a",
  "//{{ x }}",
  "https://shop{% if x %}.example{{ x }}{% endif %}/",
  "{% if x == 'a' %}https://shop.example{% endif %}{{ x }}",
  "{% assign y = x %}https://shop.example{{ y }}",
];
const goodLinks: readonly string[] = [
  "{{ x }}",
  "/{{ x }}",
  "/a/{{ x }}",
  "https://shop.example/{{ x }}",
  "https://shop.example?{{ x }}",
  "https://shop.example#{{ x }}",
  "{% if x == 'a' %}https://a.example{% else %}https://b.example{% endif %}/{{ x }}",
  "myapp://orders/{{ x }}",
  "mailto:{{ x }}",
];

test("no value becomes part of a link's host", async ({ task }) => {
  const project = await system.project("Hosts");
  const { device } = await project.register();
  const { token } = await newToken(system, project, ["templates"]);
  const wrong: string[] = [];
  for (const link of [...badLinks, ...goodLinks]) {
    const isGood = goodLinks.includes(link);
    const x = link === "{{ x }}" ? "/a" : ".evil.example";
    for (const [field, texts] of [
      ["link_to", { title: "t", link_to: link }],
      ["localizations.de.link_to", { title: "t", localizations: { de: { link_to: link } } }],
      ["image", { title: "t", image: link }],
    ] as const) {
      if (isGood && field === "image") continue; // an image must be an https URL
      const sent = { ...texts, variables: { x }, targets: [device.id] };
      const stored = { ...texts, variables: { x: { type: "string" } } };
      for (const [name, answer] of [
        ["notification", await project.call("POST /notifications", { body: { notification: sent } })],
        ["template", await project.call("PUT /templates/hosts", { token, body: { template: stored } })],
      ] as const) {
        const isRefused = answer.status === 422 && String(answer.body.errors).startsWith(`${name}.${field}: `);
        if (isGood ? answer.status >= 300 : !isRefused)
          wrong.push(`${field} ${link}: ${answer.status} ${answer.body.errors}`);
      }
    }
  }
  show(task, { links: badLinks.length + goodLinks.length });
  expect(wrong).toEqual([]);
});
