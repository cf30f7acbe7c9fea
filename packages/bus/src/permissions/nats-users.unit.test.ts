import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type BusUserName, busUsers, consumerUser } from "./bus-users.ts";
import { passwordVariables, renderConsumerAccount, renderNatsAccounts } from "./nats-users.ts";

const variables = Object.fromEntries(
  (Object.keys(busUsers) as BusUserName[]).map((name) => [name, { passwordVariable: passwordVariables[name] }]),
) as Record<BusUserName, { passwordVariable: string }>;

test("infra/nats.conf has the users that the contracts need: `npm run docs` writes them", async () => {
  const path = join(import.meta.dirname, "../../../../infra/nats.conf");
  const [settings = ""] = (await readFile(path, "utf8")).split(/^accounts /m);
  await expect(
    settings + renderNatsAccounts({ credentials: variables, consumersFile: "consumers.conf" }),
  ).toMatchFileSnapshot(path);
});

test("a consumer's account is an entry to paste, and its values are quoted correctly", () => {
  const user = consumerUser("consumers-warehouse", "consumers-warehouse");
  expect(renderConsumerAccount(user, "$2b$11$x")).toBe(`"consumers-warehouse": {
  users: [
    {
      user: "consumers-warehouse"
      password: "$2b$11$x"
      permissions: {
        publish: [
          "$JS.API.CONSUMER.INFO.PUSH_EVENTS.consumers-warehouse"
          "$JS.API.CONSUMER.MSG.NEXT.PUSH_EVENTS.consumers-warehouse"
          "$JS.ACK.PUSH_EVENTS.consumers-warehouse.>"
          "$JS.ACK.*.*.PUSH_EVENTS.consumers-warehouse.>"
        ]
        subscribe: ["_INBOX_consumers-warehouse.>"]
      }
    }
  ]
  imports: [
    { service: { account: "HERALD", subject: "$JS.API.INFO" } }
    { service: { account: "HERALD", subject: "$JS.API.CONSUMER.INFO.PUSH_EVENTS.consumers-warehouse" } }
    { service: { account: "HERALD", subject: "$JS.API.CONSUMER.MSG.NEXT.PUSH_EVENTS.consumers-warehouse" } }
    { service: { account: "HERALD", subject: "$JS.ACK.PUSH_EVENTS.consumers-warehouse.>" } }
    { service: { account: "HERALD", subject: "$JS.ACK.*.*.PUSH_EVENTS.consumers-warehouse.>" } }
  ]
}`);
});
