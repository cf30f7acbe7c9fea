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
    "device.identifiers.locale: must be a BCP 47 locale such as de or pt-BR, of at most 35 characters",
  ]);
  expect(await read()).toEqual({ current_locale: "de-AT", current_time_zone: "Europe/Vienna", model: "iPhone" });
});
