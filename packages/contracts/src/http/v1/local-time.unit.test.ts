import { expect, test } from "vitest";
import { type TimeOfSend, timeProblems } from "./local-time.ts";

const devices = { send_at: "2030-03-31T09:00:00", time_zone: "device" };

test.each<[string, TimeOfSend & { recipients?: unknown }, string[]]>([
  ["no time", {}, []],
  ["an instant", { send_at: "2030-03-31T09:00:00Z" }, []],
  ["an offset", { send_at: "2030-03-31T09:00:00+01:00" }, []],
  ["a local time in a zone", { send_at: "2030-03-31T09:00:00", time_zone: "Europe/Berlin" }, []],
  ["a local time of devices", { ...devices, past: "skip" }, []],
  ["offset and zone", { send_at: "2030-03-31T09:00:00Z", time_zone: "UTC" }, ["send_at"]],
  ["neither offset nor zone", { send_at: "2030-03-31T09:00:00" }, ["send_at"]],
  ["a zone without a time", { time_zone: "UTC" }, ["time_zone"]],
  ["past without a zone", { send_at: "2030-03-31T09:00:00Z", past: "now" }, ["past"]],
  ["past in one zone", { send_at: "2030-03-31T09:00:00", time_zone: "UTC", past: "now" }, ["past"]],
  ["recipients", { ...devices, recipients: [] }, ["time_zone"]],
])("the time of a send with %s", (_name, time, fields) => {
  expect(timeProblems(time).map(({ path }) => path[0])).toEqual(fields);
});
