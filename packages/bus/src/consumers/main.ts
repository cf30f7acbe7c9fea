import { randomBytes } from "node:crypto";
import { ConfigError, createLogger, HeraldError, natsConfig, readConfig } from "@herald/kit";
import { hash } from "bcryptjs";
import { z } from "zod";
import { closeBus, connectBus } from "../connect.ts";
import { type BusUser, consumedStream, consumerUser, renderConsumerAccount } from "../permissions/index.ts";
import { serviceAccess } from "../service-access.ts";
import { putAccount } from "./accounts-file.ts";
import { type ConsumerArguments, parseConsumerArguments, UsageError, usage } from "./consumer-arguments.ts";
import { putEventConsumer, removeEventConsumer, replayEventConsumer } from "./event-consumers.ts";
import { reload, waitForAccess } from "./wait-for-access.ts";

/** A few tens of milliseconds for nats-server at each connect, as its own tool chooses. */
const bcryptCost = 11;

const tell = (line: string) => process.stderr.write(`${line}\n`);
const fail = (why: string): never => {
  tell(why);
  process.exit(1);
};

/** What an example of `examples/` reads from its environment. */
const access = (url: string, { user, inboxPrefix }: BusUser, password: string): string =>
  [
    `NATS_URL=${url}`,
    `NATS_USER=${user}`,
    `NATS_PASSWORD=${password}`,
    `NATS_STREAM=${consumedStream}`,
    `NATS_DURABLE=${user}`,
    `NATS_INBOX_PREFIX=${inboxPrefix}`,
  ].join("\n");

const run = async (asked: ConsumerArguments): Promise<void> => {
  const config = readConfig(z.object(natsConfig), process.env);
  const log = createLogger({ service: "consumer", level: "warn" });
  const bus = await connectBus({ ...serviceAccess(config, "bootstrap"), log, waitOnFirstConnect: false });
  const { durable, accounts } = asked;
  if (asked.verb === "replay") {
    if (!(await replayEventConsumer(bus, durable, asked.from))) fail(`there is no durable ${durable}`);
    tell(`${durable} gets its events again`);
  } else if (asked.verb === "remove") {
    const was = await removeEventConsumer(bus, durable);
    if (accounts !== undefined) await putAccount(accounts, durable, undefined);
    await reload(asked.reload);
    tell(
      `${durable} is ${was ? "removed" : "not there"}${accounts ? "" : "; take its account out of nats-server's configuration too"}`,
    );
  } else {
    const outcome = await putEventConsumer(bus, durable, asked);
    tell(`durable ${durable} of ${consumedStream}: ${outcome}, reads ${asked.filters.join(", ")}`);
    const user = consumerUser(durable, durable);
    const password = randomBytes(24).toString("base64url");
    const block = renderConsumerAccount(durable, { user, credential: { password: await hash(password, bcryptCost) } });
    if (accounts === undefined) tell(`for the accounts of nats-server's configuration:\n\n${block}\n`);
    else await putAccount(accounts, durable, block);
    const [url = ""] = config.HERALD_NATS_URL;
    if (await waitForAccess(asked.reload, { url, user, password }))
      tell("nats-server lets the user in, to that durable");
    else tell("now have nats-server read its configuration, twice for a new account: SIGHUP, or --signal reload");
    tell("how to connect; the password is shown only here:");
    process.stdout.write(`${access(url, user, password)}\n`);
  }
  await closeBus(bus);
};

try {
  await run(parseConsumerArguments(process.argv.slice(2)));
} catch (error) {
  if (error instanceof UsageError) fail(`${error.message}\n\n${usage}`);
  if (error instanceof ConfigError || error instanceof HeraldError) fail(error.message);
  throw error;
}
