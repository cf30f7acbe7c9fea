import { liquidLimits } from "@herald/contracts";
import { encodeTexts } from "@herald/payload";
import { compileTexts } from "@herald/payload/liquid-parser";
import { eventually, expectStatus } from "@herald/testing";
import { expect } from "vitest";
import { cpuSeconds } from "../../bench/src/processes.ts";
import { inParallel } from "../harness/in-parallel.ts";
import type { Content, Project, Registered } from "../harness/project.ts";
import { payloadOf } from "../harness/simulators.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { show } from "./figures.ts";
import { scale } from "./scale.ts";
import { test } from "./shared-system.ts";
import { newToken } from "./world.ts";

let system: System;
let project: Project;
let token: string;
let known: Registered;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project("Templates");
  known = await project.register();
  ({ token } = await newToken(system, project, ["send", "read", "templates"]));
});
logOnFailure(() => system);

const put = (name: string, template: unknown) => project.call(`PUT /templates/${name}`, { token, body: { template } });
const variables = { name: { type: "string" } } as const;

/** Texts that a template engine would loop over, resolve in JavaScript's own objects, or parse without end. */
const sources: readonly string[] = [
  "{% for i in (1..1000000000) %}x{% endfor %}",
  "{% tablerow i in (1..99999999) %}x{% endtablerow %}",
  "{% include '/etc/passwd' %}",
  "{% render 'a' %}",
  "{% layout 'a' %}",
  "{% capture name %}x{% endcapture %}",
  "{% raw %}",
  "{% liquid assign a = 1 %}",
  "{{ __proto__ }}",
  "{{ constructor }}",
  "{{ name.constructor }}",
  "{{ name['__proto__'] }}",
  "{{ name.__proto__.polluted }}",
  "{% assign __proto__ = 1 %}",
  "{% assign constructor = name %}",
  "{{ 'x' | where: 'a' }}",
  "{{ name | split: '' | join: ',' }}",
  "{{ (1..100000000) | join }}",
  "{{ name",
  "{% if name %}",
  "{% endif %}",
  `{{ ${"[".repeat(4_000)}`,
  `{{ name${"[name".repeat(1_500)} }}`,
  "{% if name %}".repeat(300) + "{% endif %}".repeat(300),
  `{{ name${" | append: name".repeat(500)} }}`,
  "{{ name }}".repeat(800),
  "{{".repeat(4_000),
  `{% case name %}${"{% when 1 %}".repeat(600)}{% endcase %}`,
  `{% if ${"name and ".repeat(800)}name %}{% endif %}`,
];

test("malformed templates are refused with the place of the problem", async ({ task }) => {
  const wrong: string[] = [];
  const before = cpuSeconds(system.services.gateway.pid());
  for (const source of sources) {
    const notification = { title: source, variables: { name: "x" }, targets: [known.device.id] };
    for (const answer of [
      await put("bad", { title: "t", body: source, variables }),
      await project.call("POST /notifications", { body: { notification } }),
    ])
      if (answer.status !== 422 || !/line 1, column \d+: /.test(String(answer.body.errors)))
        wrong.push(`${source.slice(0, 40)}: ${answer.status} ${answer.body.errors}`);
  }
  const spent = cpuSeconds(system.services.gateway.pid()) - before;
  show(task, {
    templates: sources.length,
    "CPU ms of the gateway each": Math.round((spent * 1_000) / (2 * sources.length)),
  });
  expect(wrong).toEqual([]);
  expect((await project.call("GET /templates/bad")).status).toBe(404);
  expect({}).not.toHaveProperty("polluted");
});

/** Values that leave a link, or that begin one. */
const links: readonly string[] = [
  "javascript:alert(1)",
  " javascript:alert(1)",
  "java\tscript:alert(1)",
  "javascript%3Aalert(1)",
  "data:text/html,x",
  "//evil.example/x",
  "/\\evil.example/x",
  "/%2Fevil.example",
];

test("a value cannot turn a link into another one", async ({ task }) => {
  const send = (linkTo: string, link: string) =>
    project.call("POST /notifications", {
      body: { notification: { title: "x", link_to: linkTo, variables: { link }, targets: [known.device.id] } },
    });
  for (const link of links) {
    expect([link, (await send("{{ link }}", link)).status]).toEqual([link, 422]);
    const { id } = expectStatus(await send("/a/{{ link }}", link), 202).body.data;
    const pushed = await eventually(async () => {
      const pushes = await system.simulators.pushes({ token: known.device.token });
      const push = pushes.find((one) => payloadOf(one).notification_id === id);
      if (push === undefined) throw new Error("no push yet");
      return String(payloadOf(push).link_to);
    });
    expect(new URL(pushed, "https://app.example").href).toMatch(/^https:\/\/app\.example\/a\/[^/?#]*$/);
  }
  show(task, { links: links.length });
});

test("the most expensive accepted template delays no other project", async ({ task }) => {
  const parts = 30; // one more, and its filters would have more characters than a notification may
  const body = `{% assign a = name | append: name %}${"{{ a | append: name | truncate: 3 }}".repeat(parts)}`;
  expectStatus(await put("costly", { body, variables }), 201);
  expectStatus(await project.call("POST /templates/costly/publish", { token }), 200);
  const other = await system.project("Beside");
  const { device } = await other.register();
  const sends = scale(400, 60);
  const before = cpuSeconds(system.services.gateway.pid());
  const latencies: number[] = [];
  const load = Array.from({ length: sends }, () =>
    project.send({ template: "costly", variables: { name: "x".repeat(1_300) }, targets: [known.device.id] } as Content),
  );
  for (let at = 0; at < 20; at++) {
    const began = performance.now();
    expectStatus(await other.call(`GET /devices/${device.id}`), 200);
    latencies.push(performance.now() - began);
  }
  await Promise.all(load);
  const spent = cpuSeconds(system.services.gateway.pid()) - before;
  const worst = Math.round(Math.max(...latencies));
  show(task, {
    sends,
    "CPU ms of the gateway a send": Number(((spent * 1_000) / sends).toFixed(1)),
    "ms of another's slowest read": worst,
  });
});

/** A template whose texts are much larger as they are compiled than as they are written. */
const wide = (locales: number) => ({
  title: "Hi {{ name }}",
  localizations: Object.fromEntries(
    Array.from({ length: locales }, (_, at) => [`en-${at}`, { body: "{{name}}".repeat(190) }]),
  ),
  variables,
});
const compiledBytes = (template: ReturnType<typeof wide>): number =>
  Buffer.byteLength(encodeTexts(compileTexts(template, new Set(["name"])).content));

/** Of a plain send's CPU. Generous, because the texts travel, are stored and are rendered. */
const maxRatio = 8;

test("sends that name a template of 30 KB do not slow others", async ({ task }) => {
  expect(await put("wide", wide(20))).toMatchObject({
    status: 422,
    body: {
      errors: [expect.stringMatching(/^template\.localizations\.en-\d+\.body: takes .* at most 65536 .*shorter/)],
    },
  });
  let locales = 19;
  while (compiledBytes(wide(locales)) > liquidLimits.compiledBytes) locales--;
  expectStatus(await put("wide", wide(locales)), 201);
  expectStatus(await project.call("POST /templates/wide/publish", { token }), 200);
  const other = await system.project("Beside");
  const { device } = await other.register();
  const sends = scale(1_000, 120);
  const cpu = () => (["gateway", "dispatch"] as const).map((name) => cpuSeconds(system.services[name].pid()) * 1_000);
  const sendAll = async (content: Content) => {
    const ids = await inParallel(Array.from({ length: sends }), 8, async () => (await project.send(content)).id);
    for (const id of ids.slice(-8)) await project.final(id, 120_000);
  };
  /** After a first round, because the first calls of a process cost more. */
  const costOf = async (content: Content) => {
    await sendAll(content);
    const before = cpu();
    await sendAll(content);
    return cpu().map((ms, at) => (ms - (before[at] ?? 0)) / sends);
  };
  const target = known.device.id;
  const plain = await costOf({ title: "Hi", targets: [target] });
  const latencies: number[] = [];
  let running = true;
  const beside = (async () => {
    while (running) {
      const began = performance.now();
      await other.send({ title: "Beside", targets: [device.id] });
      latencies.push(performance.now() - began);
    }
  })();
  const named = await costOf({
    template: "wide",
    recipients: [{ target: `device:${target}`, variables: { name: "x" } }],
  });
  running = false;
  await beside;
  const shown = (costs: readonly number[]) => costs.map((ms) => ms.toFixed(1)).join(", ");
  show(task, {
    sends,
    "bytes of compiled texts": compiledBytes(wide(locales)),
    "CPU ms of gateway, dispatch for a plain send": shown(plain),
    "for one with the template": shown(named),
    "ms of another's slowest send": Math.round(Math.max(...latencies)),
  });
  for (const [at, ms] of named.entries()) expect(ms / (plain[at] ?? 1)).toBeLessThan(maxRatio);
});
