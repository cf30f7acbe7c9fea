import { eventually, expectStatus } from "@herald/testing";
import { expect } from "vitest";
import { newAddress } from "./harness/seed.ts";
import { test } from "./harness/shared-system.ts";
import { payloadOf } from "./harness/simulators.ts";

test("a time zone and a locale have one name, and a bad one costs an app the value and a backend the request", async ({
  system,
}) => {
  const project = await system.project("Identifiers");
  const { token } = await newAddress(system.simulators, "ios");
  const identify = async (identifiers: object) => {
    const body = { project_id: project.id, identifier: token, platform: "ios", identifiers };
    return (await project.call("PUT /identification", { body, token: undefined })).body;
  };
  const first = await identify({ language: "de_AT", timezone: "Mars/Olympus", model: "iPhone" });
  expect(first.ignored).toEqual(["identifiers.timezone"]);
  const path = `/devices/${first.data.id}`;
  const read = async () => expectStatus(await project.call(`GET ${path}`), 200).body.data.identifiers;
  expect(await read()).toEqual({ current_locale: "de-AT", model: "iPhone" });

  const { id } = await project.send({
    title: "Hello",
    localizations: { de: { title: "Hallo" } },
    targets: [`device:${first.data.id}`],
  });
  const pushes = await eventually(async () => {
    const all = await system.simulators.pushes();
    const own = all.map(payloadOf).filter((payload) => payload?.notification_id === id);
    expect(own).toHaveLength(1);
    return own;
  });
  expect(pushes[0]).toMatchObject({ aps: { alert: { title: "Hallo" } } });

  const change = (identifiers: object, credential?: string) =>
    project.call(`PATCH ${path}`, { body: { device: { identifiers } }, ...(credential && { token: credential }) });
  const own = await change({ time_zone: "Europe/Vienna", locale: "Austrian German" }, first.credential);
  expect(own.body).toMatchObject({
    data: { identifiers: { current_time_zone: "Europe/Vienna", current_locale: "de-AT" } },
    ignored: ["identifiers.locale"],
  });

  const device = { token, platform: "ios", identifiers: { locale: 1 } };
  expectStatus(await change({ time_zone: "Mars/Olympus" }), 422);
  expect(expectStatus(await project.call("POST /devices", { body: { device } }), 422).body.errors).toEqual([
    "device.identifiers.locale: must be a BCP 47 locale such as de or pt-BR, of at most 35 characters without extensions",
  ]);
  expect(await read()).toEqual({ current_locale: "de-AT", current_time_zone: "Europe/Vienna", model: "iPhone" });
});

test("locales are compared by what they mean, for texts and for targets", async ({ system }) => {
  const project = await system.project("Locales");
  const register = async (locale: string) => {
    const { token } = await newAddress(system.simulators, "ios");
    const device = { token, platform: "ios", identifiers: { locale } };
    return expectStatus(await project.call("POST /devices", { body: { device } }), 201).body.data;
  };
  const [taiwan, china, mexico] = [await register("zh_TW"), await register("zh_CN_#Hans"), await register("es-MX")];
  expect(china.identifiers).toEqual({ current_locale: "zh-Hans-CN" });

  const localizations = { "zh-Hans": { title: "简体" }, "zh-Hant": { title: "繁體" }, "es-419": { title: "Hola" } };
  const { id } = await project.send({ title: "Hello", localizations, targets: ["all"] });
  const alerts = await eventually(async () => {
    const all = (await system.simulators.pushes()).map(payloadOf);
    const own = all.filter((payload) => payload?.notification_id === id).map((payload) => payload?.aps?.alert);
    expect(own).toHaveLength(3);
    return own;
  });
  expect(alerts).toEqual(expect.arrayContaining([{ title: "Hola" }, { title: "简体" }, { title: "繁體" }]));

  const reached = async (target: string) => {
    const page = await project.call(`GET /devices?match=${encodeURIComponent(target)}`);
    return expectStatus(page, 200)
      .body.data.map(({ id: device }: { id: string }) => device)
      .sort();
  };
  expect(await reached("identifiers:current_locale=zh-Hant")).toEqual([taiwan.id]);
  expect(await reached("identifiers:current_locale=zh-hant-tw")).toEqual([taiwan.id]);
  expect(await reached("identifiers:current_locale=zh")).toEqual([china.id]);
  expect(await reached("condition:identifiers.current_locale in ['zh-Hant', 'es-419']")).toEqual(
    [taiwan.id, mexico.id].sort(),
  );
});

test("abbreviations that are not IANA's are no time zones, wherever one comes in", async ({ system }) => {
  const project = await system.project("Abbreviations");
  const { token } = await newAddress(system.simulators, "ios");
  const body = { project_id: project.id, identifier: token, platform: "ios", identifiers: { time_zone: "BST" } };
  const identified = expectStatus(await project.call("PUT /identification", { body, token: undefined }), 201).body;
  expect(identified.ignored).toEqual(["identifiers.time_zone"]);

  const zone = "must be an IANA time zone such as Europe/Berlin";
  const errorsOf = async (route: string, of: object) => expectStatus(await project.call(route, of), 422).body.errors;
  const device = { token, platform: "ios", identifiers: { timezone: "AST" } };
  expect(await errorsOf("POST /devices", { body: { device } })).toEqual([`device.identifiers.timezone: ${zone}`]);
  expect(await errorsOf("GET /stats?time_zone=SystemV/EST5EDT", {})).toEqual([`time_zone: ${zone}`]);
  const notification = { title: "Hello", targets: ["all"], send_at: "2030-01-31T09:00:00", time_zone: "ECT" };
  expect(await errorsOf("POST /notifications", { body: { notification } })).toContainEqual(
    expect.stringContaining("notification.time_zone: must be an IANA time zone"),
  );
  // IANA's own short names stay.
  const own = { token, platform: "ios", identifiers: { timezone: "EST5EDT" } };
  expectStatus(await project.call("POST /devices", { body: { device: own } }), 200);
});
