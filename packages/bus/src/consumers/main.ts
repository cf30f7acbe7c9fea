import { randomBytes } from "node:crypto";
import { ConfigError, createLogger, HeraldError, natsConfig, readConfig } from "@herald/kit";
import { AckPolicy, type ConsumerConfig, DeliverPolicy, ReplayPolicy } from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";
import { hash } from "bcryptjs";
import { z } from "zod";
import { undefinedIfMissing } from "../bus-error.ts";
import { closeBus, connectBus, connectionOf, serviceAccess } from "../connect.ts";
import { consumedStream, consumerUser, renderConsumerAccount } from "../permissions/index.ts";
import { putAccount, reload, waitForAccess } from "./consumer-accounts.ts";
import {
  ArgumentError,
  type ConsumerArguments,
  type From,
  parseConsumerArguments,
  usage,
} from "./consumer-arguments.ts";

/** The default of nats-server's own tool; costs the server a few tens of milliseconds at each connect. */
const bcryptCost = 11;

const tell = (line: string) => process.stderr.write(`${line}\n`);
const fail = (why: string): never => {
  tell(why);
  process.exit(1);
};

/** The same settings as `consumers-opens`: a message that is not settled within 30 s is redelivered, without limit. */
const settings = {
  ack_policy: AckPolicy.Explicit,
  replay_policy: ReplayPolicy.Instant,
  ack_wait: nanos(30_000),
  max_ack_pending: 20_000,
  max_deliver: -1,
};

const startOf = (from: From): Partial<ConsumerConfig> => {
  if (from === "all") return { deliver_policy: DeliverPolicy.All };
  if (from === "new") return { deliver_policy: DeliverPolicy.New };
  return { deliver_policy: DeliverPolicy.StartTime, opt_start_time: from.toISOString() };
};

const run = async (asked: ConsumerArguments): Promise<void> => {
  const config = readConfig(z.object(natsConfig), process.env);
  const log = createLogger({ service: "consumer", level: "warn" });
  const bus = await connectBus({ ...serviceAccess(config, "bootstrap"), log, waitOnFirstConnect: false });
  const { durable, accounts } = asked;
  const { consumers } = connectionOf(bus).jsm;
  const found = (await undefinedIfMissing(consumers.info(consumedStream, durable)))?.config;
  if (asked.verb === "replay") {
    if (found === undefined) return fail(`there is no durable ${durable}`);
    // Recreates the durable, because its start position cannot be changed; its readers continue.
    const { opt_start_time, opt_start_seq, deliver_policy, ...kept } = found;
    await consumers.delete(consumedStream, durable);
    await consumers.add(consumedStream, { ...kept, ...startOf(asked.from) });
    tell(`${durable} gets its events again`);
  } else if (asked.verb === "remove") {
    if (found !== undefined) await consumers.delete(consumedStream, durable);
    if (accounts !== undefined) await putAccount(accounts, durable, undefined);
    await reload(asked.reload);
    tell(
      `${durable} is ${found ? "removed" : "not there"}${accounts ? "" : "; take its account out of nats-server's configuration too"}`,
    );
  } else {
    const read = { filter_subjects: [...asked.filters] };
    // An existing durable keeps its position.
    if (found !== undefined) await consumers.update(consumedStream, durable, { ...found, ...read });
    else await consumers.add(consumedStream, { ...settings, ...startOf(asked.from), ...read, durable_name: durable });
    const outcome = found === undefined ? "created" : "updated";
    tell(`durable ${durable} of ${consumedStream}: ${outcome}, reads ${asked.filters.join(", ")}`);
    const user = consumerUser(durable, durable);
    // No character that a shell or a program reads as more than a part of it: one in 64 began with a dash.
    const password = randomBytes(24).toString("hex");
    const block = renderConsumerAccount(user, await hash(password, bcryptCost));
    if (accounts === undefined) tell(`for the accounts of nats-server's configuration:\n\n${block}\n`);
    else await putAccount(accounts, durable, block);
    const [url = ""] = config.HERALD_NATS_URL;
    if (await waitForAccess(asked.reload, { url, user, password }))
      tell("nats-server lets the user in, to that durable");
    else tell("now have nats-server read its configuration, twice for a new account: SIGHUP, or --signal reload");
    tell("how to connect; the password is shown only here:");
    // The environment variables that the programs in `examples/` read.
    const access = {
      NATS_URL: url,
      NATS_USER: user.user,
      NATS_PASSWORD: password,
      NATS_STREAM: consumedStream,
      NATS_DURABLE: durable,
      NATS_INBOX_PREFIX: user.inboxPrefix,
    };
    for (const [name, value] of Object.entries(access)) process.stdout.write(`${name}=${value}\n`);
  }
  await closeBus(bus);
};

try {
  await run(parseConsumerArguments(process.argv.slice(2)));
} catch (error) {
  if (error instanceof ArgumentError) fail(`${error.message}\n\n${usage}`);
  if (error instanceof ConfigError || error instanceof HeraldError) fail(error.message);
  throw error;
}
