import {
  answersTo,
  askedOf,
  type BusService,
  type BusUser,
  type BusUserName,
  busServices,
  busUsers,
  consumedStream,
  readsOf,
} from "./bus-users.ts";

/** A user's password (or its bcrypt hash), or the variable of the server's environment that has it. */
type BusCredential = { readonly password: string } | { readonly passwordVariable: string };

/** The environment variables of the passwords. */
export const passwordVariables = Object.fromEntries(
  Object.keys(busUsers).map((name) => [name, `HERALD_NATS_PASSWORD_${name.toUpperCase()}`]),
) as Readonly<Record<BusUserName, string>>;

type NatsUsersOptions = {
  readonly credentials: Readonly<Record<BusUserName, BusCredential>>;
  /** A file beside the configuration with the accounts of external consumers. */
  readonly consumersFile?: string | undefined;
};

/** The account of Herald's streams, whose admin has all permissions. */
const heraldAccount = "HERALD";

/** With this import an account can send JetStream requests to Herald's. Without it the server replies that JetStream is not enabled. */
const shadow = "$JS.API.INFO";

/** JSON is valid nats-server syntax. Only variables are unquoted, because quoted ones would be literal text. */
const quoted = (value: unknown): string => JSON.stringify(value);

const block = (head: string, lines: readonly string[], end: "}" | "]"): string[] => [
  head,
  ...lines.map((line) => `  ${line}`),
  end,
];
const list = (name: string, lines: readonly string[]): string[] => block(`${name}: [`, lines, "]");
const subjectList = (name: string, subjects: readonly string[]): string[] =>
  subjects.length <= 1 ? [`${name}: [${subjects.map(quoted).join()}]`] : list(name, subjects.map(quoted));

/** One entry of `users` in nats-server's configuration. */
const userLines = ({ user, permissions }: BusUser, credential: BusCredential): string[] => {
  const password = "password" in credential ? quoted(credential.password) : `$${credential.passwordVariable}`;
  const allowed = permissions && [
    ...subjectList("publish", permissions.publish),
    ...subjectList("subscribe", permissions.subscribe),
  ];
  const lines = [`user: ${quoted(user)}`, `password: ${password}`];
  return block("{", [...lines, ...(allowed ? block("permissions: {", allowed, "}") : [])], "}");
};

/** JetStream replies to these with any number of messages. */
const answersOften = /^\$JS\.API\.(CONSUMER\.MSG\.NEXT|DIRECT\.GET)\./;

const exportOf = (subject: string, accounts?: readonly string[]): string => {
  const often = answersOften.test(subject) ? ', response_type: "stream"' : "";
  const to = accounts === undefined ? "" : `, accounts: [${accounts.map(quoted).join(", ")}]`;
  return `{ service: ${quoted(subject)}${often}${to} }`;
};

const importOf = (kind: "service" | "stream", subject: string, account = heraldAccount): string =>
  `{ ${kind}: { account: ${quoted(account)}, subject: ${quoted(subject)} } }`;

/**
 * The subjects that accounts of consumers may import: to read the info of durables of events, to pull and to settle. With an import,
 * replies stay in the caller's account. Within Herald's own account a reply goes to any subject that the caller names, so a caller could
 * forge a command without the permission to publish it.
 */
const consumerExports = [
  shadow,
  `$JS.API.CONSUMER.INFO.${consumedStream}.*`,
  `$JS.API.CONSUMER.MSG.NEXT.${consumedStream}.*`,
  `$JS.ACK.${consumedStream}.*.>`,
  `$JS.ACK.*.*.${consumedStream}.*.>`,
];

/** What an account imports: all subjects that its user may publish, so that replies never arrive in another account. */
const importedBy = ({ permissions }: BusUser): string[] =>
  (permissions?.publish ?? []).filter((subject) => subject !== answersTo);

/** Exports each subject that services import, only to those services. A service's account is named after its user. */
const serviceExports = (): string[] => {
  const imports = busServices.flatMap((service) =>
    importedBy(busUsers[service]).map((subject) => ({ subject, account: busUsers[service].user })),
  );
  const reads = busServices.flatMap((service) => readsOf(service).map((subject) => [subject, busUsers[service].user]));
  return [
    ...[...Map.groupBy(imports, ({ subject }) => subject)].map(([subject, importers]) =>
      exportOf(
        subject,
        importers.map(({ account }) => account),
      ),
    ),
    ...reads.map(([subject, account]) => `{ stream: ${quoted(subject)}, accounts: [${quoted(account)}] }`),
  ];
};

/** An account in nats-server's configuration: its user, its exports, and imports of all subjects that the user may publish. */
const accountLines = (name: string, user: BusUser, credential: BusCredential, service?: BusService): string[] => {
  const asked = service === undefined ? [] : askedOf(service);
  const imports = [
    ...[shadow, ...importedBy(user)].map((subject) => importOf("service", subject)),
    ...(service === undefined ? [] : readsOf(service)).map((subject) => importOf("stream", subject)),
  ];
  const exports = asked.map((subject) => exportOf(subject, [heraldAccount]));
  return block(
    `${quoted(name)}: {`,
    [
      ...list("users", userLines(user, credential)),
      ...(exports.length === 0 ? [] : list("exports", exports)),
      ...list("imports", imports),
    ],
    "}",
  );
};

/** A consumer's account in nats-server's configuration. */
export const renderConsumerAccount = (user: BusUser, password: string): string =>
  accountLines(user.user, user, { password }).join("\n");

/** The `accounts` of nats-server's configuration: Herald's with its streams, one for each service and one for each consumer. */
export const renderNatsAccounts = ({ credentials, consumersFile }: NatsUsersOptions): string => {
  const herald = [
    "jetstream: enabled",
    ...list("users", [
      "# Makes streams, buckets and durables, and those of new consumers.",
      ...userLines(busUsers.bootstrap, credentials.bootstrap),
      "# For people: may do everything. No part of Herald runs as it.",
      ...userLines(busUsers.admin, credentials.admin),
    ]),
    "# For consumers, whose accounts import theirs; and for each service what it does.",
    ...list("exports", [...consumerExports.map((subject) => exportOf(subject)), ...serviceExports()]),
    "# What the services are asked.",
    ...list(
      "imports",
      busServices.flatMap((service) =>
        askedOf(service).map((subject) => importOf("service", subject, busUsers[service].user)),
      ),
    ),
  ];
  const accounts = [
    ...block(`${heraldAccount}: {`, herald, "}"),
    "# The services, each in an account of its own that imports what it does on the bus.",
    ...busServices.flatMap((service) =>
      accountLines(busUsers[service].user, busUsers[service], credentials[service], service),
    ),
    "# A consumer of open events: one durable, read only.",
    ...accountLines("consumers-opens", busUsers.opens, credentials.opens),
    "# More of them: `npm run consumer -- add` writes what goes into that file.",
    ...(consumersFile === undefined ? [] : [`include ${quoted(consumersFile)}`]),
  ];
  return `${block("accounts {", accounts, "}").join("\n")}\n`;
};
