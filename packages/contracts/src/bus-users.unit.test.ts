import { describe, expect, test } from "vitest";
import { type BusService, busServices, consumerPrefix, ownerOf, publishers } from "./bus-access.ts";
import { type BusUser, type BusUserName, busUsers } from "./bus-users.ts";
import { messages } from "./catalogue.ts";
import * as analytics from "./requests/analytics.ts";
import * as dispatch from "./requests/dispatch.ts";
import * as registry from "./requests/registry.ts";
import * as users from "./requests/users.ts";
import { type DurableName, durables } from "./streams.ts";
import { overlaps } from "./subject-filter.ts";

const permissionsOf = (name: BusUserName) => (busUsers[name] as BusUser).permissions;
const may = (service: BusService, subject: string) =>
  permissionsOf(service)?.publish.some((allowed) => overlaps(allowed, subject)) ?? true;
const hears = (service: BusService, subject: string) =>
  permissionsOf(service)?.subscribe.some((allowed) => overlaps(allowed, subject)) ?? true;

/** The services other than the gateway that send requests. */
const besides: Readonly<Record<string, BusService[]>> = {
  [users.CheckRecipients.subject]: ["dispatch"],
  [registry.ResolveSends.subject]: ["dispatch"],
  [users.UsersOfDeliveries.subject]: ["analytics"],
};
const keyedMutex = (one: BusService, other: BusService): number =>
  busServices.indexOf(one) - busServices.indexOf(other);

describe("every contract has users", () => {
  test.each(Object.entries(publishers))("%s is published by those who publish it", (name, services) => {
    const subject = messages[name as keyof typeof messages].filter.replaceAll("*", "x");
    for (const service of services) expect(may(service, subject)).toBe(true);
  });

  test.each(Object.keys(durables) as DurableName[])("%s is one service's, or a consumer's", (durable) => {
    const owner = ownerOf(durable);
    if (owner === undefined) expect(durable).toMatch(new RegExp(`^${consumerPrefix}`));
    const { stream } = durables[durable];
    for (const right of [`$JS.ACK.${stream}.${durable}.1.1.1.1.1`, `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`])
      expect(busServices.filter((service) => may(service, right))).toEqual(owner === undefined ? [] : [owner]);
  });

  test.each(Object.values({ ...analytics, ...dispatch, ...registry, ...users }))(
    "$name can be asked and answered",
    (question) => {
      const { subject, service } = question;
      expect(busServices.filter((one) => hears(one, subject))).toEqual([service]);
      const asking = busServices.filter((one) => may(one, subject));
      const others: readonly BusService[] = besides[subject] ?? [];
      expect(asking).toEqual([...others, "gateway" as const].toSorted(keyedMutex));
      expect(may(service as BusService, "_R_.x")).toBe(true);
    },
  );
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
