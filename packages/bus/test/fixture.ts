import { type Bus, type Consuming, closeBus, connectBus, consume, ensureStreams, type Handler } from "@herald/bus";
import {
  type DurableName,
  type ExpandV1,
  newNotificationId,
  newProjectId,
  type ProjectId,
  SendV1,
} from "@herald/contracts";
import { createLogger, type Logger } from "@herald/kit";
import { type Broker, type BrokerOptions, eventually, startBroker } from "@herald/testing";
import { type JetStreamManager, jetstreamManager, type StoredMsg } from "@nats-io/jetstream";
import { connect, type NatsConnection, nanos } from "@nats-io/transport-node";

/** Lines that the bus logged, as objects. */
export type LogLine = Record<string, unknown> & { readonly level: string; readonly msg: string };

export type BusTest = {
  readonly broker: Broker;
  readonly bus: Bus;
  readonly log: Logger;
  readonly logged: LogLine[];
  /** Direct access to the broker, for things that only an administrator can see or break. */
  readonly raw: { readonly nc: NatsConnection; readonly jsm: JetStreamManager };
  /** Starts handlers and waits until they are ready. They stop when the test ends. */
  handle(...handlers: Handler[]): Promise<Consuming>;
  /** Stops the handlers and empties every stream, so that the next test starts empty. */
  reset(): Promise<void>;
  stop(): Promise<void>;
};

/** Makes streams small enough for any disk: the declared sizes are for production. */
const sizeFactor = 0.01;

export const startBusTest = async (options: BrokerOptions = {}): Promise<BusTest> => {
  const broker = await startBroker(options);
  const logged: LogLine[] = [];
  const destination = { write: (line: string) => void logged.push(JSON.parse(line)) };
  const log = createLogger({ service: "bus-test", level: "debug", destination });
  const bus = await connectBus({ url: broker.url, name: "bus-test", log });
  await ensureStreams(bus, { replicas: 1, sizeFactor });
  const nc = await connect({ servers: broker.url, maxReconnectAttempts: -1, reconnectTimeWait: 100 });
  const jsm = await jetstreamManager(nc);
  let consuming: Consuming[] = [];

  const stopHandlers = async () => {
    await Promise.all(consuming.map((one) => one.stop(2_000)));
    consuming = [];
  };
  return {
    broker,
    bus,
    log,
    logged,
    raw: { nc, jsm },
    async handle(...handlers) {
      const started = await consume(bus, handlers);
      consuming.push(started);
      await eventually(() => {
        if (!started.ready()) throw new Error("the consumers are not ready");
      });
      return started;
    },
    async reset() {
      await stopHandlers();
      for await (const { config, state } of jsm.streams.list())
        if (state.messages > 0) await jsm.streams.purge(config.name);
      // Restores durables that a test has changed.
      await ensureStreams(bus, { replicas: 1, sizeFactor });
      logged.length = 0;
    },
    async stop() {
      await stopHandlers();
      await closeBus(bus);
      await nc.close();
      await broker.stop();
    },
  };
};

export const dayMs = 86_400_000;
export const isoIn = (ms: number): string => new Date(Date.now() + ms).toISOString();

export const newProject = (): ProjectId => newProjectId(new Date());

/** The command that the gateway publishes for an accepted notification. */
export const sendOf = (projectId = newProject()): SendV1 =>
  SendV1.schema.parse({
    projectId,
    notificationId: newNotificationId(new Date()),
    content: { title: "Hello", targets: ["all"] },
    acceptedAt: isoIn(0),
    expiresAt: isoIn(dayMs),
  });

export const expandOf = (projectId = newProject(), page = 0): ExpandV1 => ({
  projectId,
  notificationId: newNotificationId(new Date()),
  page,
  fromBucket: 0,
  expansion: { n: 0 },
  targets: ["all"],
  lane: "broadcast",
  expiresAt: isoIn(dayMs),
});

/** Shortens the ack wait, 30 s in production, so that a test takes about a second. */
export const shortenAckWait = async ({ raw }: BusTest, stream: string, durable: DurableName, ms: number) => {
  const { config } = await raw.jsm.consumers.info(stream, durable);
  await raw.jsm.consumers.update(stream, durable, { ...config, ack_wait: nanos(ms) });
};

export const messagesIn = async ({ raw }: BusTest, stream: string): Promise<number> =>
  (await raw.jsm.streams.info(stream)).state.messages;

/** All messages of a stream, oldest first. */
export const readStream = async ({ raw }: BusTest, stream: string) => {
  const { state } = await raw.jsm.streams.info(stream);
  const found: StoredMsg[] = [];
  const atOnce = 100;
  for (let first = state.first_seq; first <= state.last_seq; first += atOnce) {
    const count = Math.min(atOnce, state.last_seq - first + 1);
    const read = (_: unknown, index: number) => raw.jsm.streams.getMessage(stream, { seq: first + index });
    const messages = await Promise.all(Array.from({ length: count }, read));
    found.push(...messages.filter((message) => message !== null));
  }
  return found;
};

export const headersOf = (message: StoredMsg | undefined): Record<string, readonly string[]> =>
  Object.fromEntries(message?.header ?? []);
