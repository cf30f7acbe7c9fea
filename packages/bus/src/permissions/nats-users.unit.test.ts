import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type BusUserName, busUsers, consumerUser } from "./bus-users.ts";
import { passwordVariables, renderConsumerAccount, renderNatsAccounts } from "./nats-users.ts";

const variables = Object.fromEntries(
  (Object.keys(busUsers) as BusUserName[]).map((name) => [name, { passwordVariable: passwordVariables[name] }]),
) as Record<BusUserName, { passwordVariable: string }>;

const infra = join(import.meta.dirname, "../../../../infra");
const natsConf = async () => {
  const [settings = ""] = (await readFile(join(infra, "nats.conf"), "utf8")).split(/^accounts /m);
  return settings + renderNatsAccounts({ credentials: variables, consumersFile: "consumers.conf" });
};
const lineBefore = (text: string, at: number) => text.slice(text.lastIndexOf("\n", at) + 1, at);
const indented = (text: string, indent: string) => text.trimEnd().replaceAll(/^(?=.)/gm, indent);

test("infra/nats.conf has the users that the contracts need: `npm run docs` writes them", async () => {
  await expect(await natsConf()).toMatchFileSnapshot(join(infra, "nats.conf"));
});

const startNats = () => readFile(join(infra, "start-nats"), "utf8");

test("infra/helm/nats-values.yaml has the same accounts and start, as NATS' own chart takes them", async () => {
  const path = join(infra, "helm/nats-values.yaml");
  const start = indented(await startNats(), "        ");
  const [settings = ""] = (await readFile(path, "utf8"))
    .replace(/( - \|\n)(?: {8}.*\n)+/, (_, head) => `${head}${start}\n`)
    .split(/^ {4}accounts:/m);
  // A map in YAML's flow style needs commas. The chart unquotes what is between << and >>.
  const accounts = renderNatsAccounts({ credentials: variables })
    .replaceAll(/([^{[\s])$/gm, (end, _last, at, text) => (/#[^"]*$/.test(lineBefore(text, at)) ? end : `${end},`))
    .replaceAll(/\$(HERALD_\w+)/g, '"<< $$$1 >>"')
    .replace("accounts {", "accounts: {")
    .trimEnd()
    .replace(/,$/, "");
  await expect(`${settings}${indented(accounts, "    ")}\n`).toMatchFileSnapshot(path);
});

test("infra/helm/evaluation.yaml contains infra/start-nats, infra/nats.conf and infra/mongo-users.js", async () => {
  const path = join(infra, "helm/evaluation.yaml");
  const [objects = ""] = (await readFile(path, "utf8")).split(/^data:\n/m);
  const files = {
    "start-nats": await startNats(),
    "nats.conf": await natsConf(),
    "consumers.conf": "# Accounts of consumers.",
    "mongo-users.js": await readFile(join(infra, "mongo-users.js"), "utf8"),
  };
  const data = Object.entries(files).map(([name, text]) => `  ${name}: |\n${indented(text, "    ")}\n`);
  await expect(`${objects}data:\n${data.join("")}`).toMatchFileSnapshot(path);
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
