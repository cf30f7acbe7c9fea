import * as contracts from "@herald/contracts";
import { buckets, type DurableName, durables, messages, streams } from "@herald/contracts";
import { describe, expect, test } from "vitest";
import {
  type BusService,
  type BusUser,
  type BusUserName,
  busServices,
  busUsers,
  consumerPrefix,
  grants,
  overlaps,
  serviceOf,
} from "./bus-users.ts";

const permissionsOf = (name: BusUserName) => (busUsers[name] as BusUser).permissions;
const may = (service: BusService, subject: string) =>
  permissionsOf(service)?.publish.some((allowed) => overlaps(allowed, subject)) ?? true;
const hears = (service: BusService, subject: string) =>
  permissionsOf(service)?.subscribe.some((allowed) => overlaps(allowed, subject)) ?? true;

/** The services besides the gateway that may send each request. */
const besides: Readonly<Record<string, BusService[]>> = {
  [contracts.audienceRequests.check.subject]: ["dispatch"],
  [contracts.erasureRequests.eraseDevices.subject]: ["registry"],
  [contracts.audienceRequests.size.subject]: ["dispatch"],
  [contracts.audienceRequests.zones.subject]: ["dispatch"],
  [contracts.recipientRequests.read.subject]: ["registry"],
  [contracts.recipientRequests.record.subject]: ["registry"],
  [contracts.audienceRequests.resolve.subject]: ["dispatch"],
  [contracts.deliveryRequests.users.subject]: ["analytics"],
  [contracts.openRequests.ofDevices.subject]: ["dispatch"],
  [contracts.openRequests.stored.subject]: ["dispatch"],
};

type Request = { readonly name: string; readonly subject: string; readonly service: BusService };

const requests = Object.entries<unknown>(contracts)
  .filter(([name]) => name.endsWith("Requests"))
  .flatMap(([, resource]) => Object.values(resource as object) as Request[]);

const byService = (one: BusService, other: BusService): number => busServices.indexOf(one) - busServices.indexOf(other);

describe("every contract has users", () => {
  test.each(Object.keys(messages) as (keyof typeof messages)[])("a service publishes %s", (name) => {
    const publishers = busServices.filter((service) => grants[service].publishes.includes(name));
    expect(publishers).not.toEqual([]);
    const subject = messages[name].filter.replaceAll("*", "x");
    for (const service of publishers) expect(may(service, subject)).toBe(true);
  });

  test.each(Object.keys(streams))("a service measures %s", (stream) => {
    expect(busServices.filter((service) => may(service, `$JS.API.STREAM.INFO.${stream}`))).not.toEqual([]);
  });

  test.each(Object.keys(buckets))("a service writes the bucket %s, and a service reads it", (bucket) => {
    const reading = [`$JS.API.DIRECT.GET.KV_${bucket}.$KV.${bucket}.x`, `$JS.API.CONSUMER.CREATE.KV_${bucket}.x`];
    expect(busServices.filter((service) => may(service, `$KV.${bucket}.>`))).not.toEqual([]);
    expect(busServices.filter((service) => reading.some((subject) => may(service, subject)))).not.toEqual([]);
  });

  test.each(Object.keys(durables) as DurableName[])("%s is one service's, or a consumer's", (durable) => {
    const owner = serviceOf(durable);
    if (owner === undefined) expect(durable).toMatch(new RegExp(`^${consumerPrefix}`));
    const { stream } = durables[durable];
    for (const right of [`$JS.ACK.${stream}.${durable}.1.1.1.1.1`, `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`])
      expect(busServices.filter((service) => may(service, right))).toEqual(owner === undefined ? [] : [owner]);
  });

  test.each(requests)("$name can be asked and answered", ({ subject, service }) => {
    expect(busServices.filter((one) => hears(one, subject))).toEqual([service]);
    const asking = busServices.filter((one) => may(one, subject));
    const others: readonly BusService[] = besides[subject] ?? [];
    expect(asking).toEqual([...others, "gateway" as const].toSorted(byService));
    expect(may(service, "_R_.x")).toBe(true);
    // Of a reply in parts, each part but the first is requested.
    for (const one of asking) expect(may(one, `push.req.v1.${service}.rest.x`)).toBe(true);
  });
});

test("every user has its own name and inbox", () => {
  const users: BusUser[] = Object.values(busUsers);
  expect(new Set(users.map(({ user }) => user)).size).toBe(users.length);
  for (const { user, inboxPrefix } of users) {
    const listening = users.filter(
      (other) =>
        other.permissions?.subscribe.some((allowed) => overlaps(allowed, `${inboxPrefix}.x`)) && other.user !== user,
    );
    expect(listening).toEqual([]);
  }
});

test.each([
  ["a.b", "a.b", true],
  ["a.*", "a.b", true],
  ["a.>", "a.b.c", true],
  ["*.b", "a.*", true],
  ["a.>", "a", false],
  ["a.b", "a.b.c", false],
  ["a.*", "b.*", false],
])("%s and %s overlap: %s", (one, other, expected) => {
  expect(overlaps(one, other)).toBe(expected);
  expect(overlaps(other, one)).toBe(expected);
});
