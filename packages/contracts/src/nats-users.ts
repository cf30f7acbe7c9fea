import { type BusService, busServices, consumedStream, readers } from "./bus-access.ts";
import { answersTo, askedOf, type BusUser, type BusUserName, busUsers } from "./bus-users.ts";
import { type StreamName, streams } from "./streams.ts";

/** How a user proves who it is: a password (or its bcrypt hash), one from the server's environment, or an nkey's public half. */
export type BusCredential =
  | { readonly password: string }
  | { readonly passwordVariable: string }
  | { readonly nkey: string };

/** A consumer's user beside those that Herald brings along. */
export type ConsumerUser = { readonly user: BusUser; readonly credential: BusCredential };

/** JSON is nats-server's own syntax too; only a variable stands without quotes, or it would be taken by its letters. */
const quoted = (value: unknown): string => JSON.stringify(value);

const identity = ({ user }: BusUser, credential: BusCredential): string[] => {
  if ("nkey" in credential) return [`nkey: ${quoted(credential.nkey)}`];
  const password = "password" in credential ? quoted(credential.password) : `$${credential.passwordVariable}`;
  return [`user: ${quoted(user)}`, `password: ${password}`];
};

const list = (name: string, subjects: readonly string[], indent: string): string[] =>
  subjects.length <= 1
    ? [`${indent}${name}: [${subjects.map(quoted).join()}]`]
    : [`${indent}${name}: [`, ...subjects.map((subject) => `${indent}  ${quoted(subject)}`), `${indent}]`];

/** One entry of the `users` of nats-server's configuration. */
export const renderNatsUser = (user: BusUser, credential: BusCredential, indent = ""): string => {
  const { permissions } = user;
  const lines = identity(user, credential).map((line) => `${indent}  ${line}`);
  if (permissions) {
    lines.push(`${indent}  permissions: {`);
    lines.push(...list("publish", permissions.publish, `${indent}    `));
    lines.push(...list("subscribe", permissions.subscribe, `${indent}    `), `${indent}  }`);
  }
  return [`${indent}{`, ...lines, `${indent}}`].join("\n");
};

/** The variables that passwords come from, where a deployment keeps them in the environment. */
export const passwordVariables: Readonly<Record<BusUserName, string>> = {
  gateway: "HERALD_NATS_PASSWORD_GATEWAY",
  registry: "HERALD_NATS_PASSWORD_REGISTRY",
  dispatch: "HERALD_NATS_PASSWORD_DISPATCH",
  analytics: "HERALD_NATS_PASSWORD_ANALYTICS",
  bootstrap: "HERALD_NATS_PASSWORD_BOOTSTRAP",
  opens: "HERALD_NATS_PASSWORD_OPENS",
  admin: "HERALD_NATS_PASSWORD_ADMIN",
};

/** What each user is for, as a comment in the configuration. */
const purposes: Readonly<Record<BusUserName, string>> = {
  gateway: "The services, each in an account of its own that imports what it does on the bus.",
  registry: "",
  dispatch: "",
  analytics: "",
  bootstrap: "Makes streams, buckets and durables, and those of new consumers.",
  opens: "A consumer of open events: one durable, read only.",
  admin: "For people: may do everything. No part of Herald runs as it.",
};

export type NatsUsersOptions = {
  readonly credentials: Readonly<Record<BusUserName, BusCredential>>;
  /** Beside the configuration: the accounts of more consumers. */
  readonly consumersFile?: string | undefined;
  /** With comments, for whoever reads the file. */
  readonly explain?: boolean;
};

/** Where Herald's streams are, and who may do everything with them. */
const heraldAccount = "HERALD";

/** Where an account imports this, its requests to JetStream leave it; else the server answers itself that the account has none. */
const shadow = "$JS.API.INFO";

/** JetStream answers these with any number of messages. */
const answersOften = /^\$JS\.API\.(CONSUMER\.MSG\.NEXT|DIRECT\.GET)\./;

const exportOf = (subject: string, accounts?: readonly string[]): string => {
  const often = answersOften.test(subject) ? ', response_type: "stream"' : "";
  const to = accounts === undefined ? "" : `, accounts: [${accounts.map(quoted).join(", ")}]`;
  return `{ service: ${quoted(subject)}${often}${to} }`;
};

const importOf = (subject: string, account = heraldAccount): string =>
  `{ service: { account: ${quoted(account)}, subject: ${quoted(subject)} } }`;

/**
 * What the accounts of consumers may import: to ask about, to read and to settle durables of the events. As an import, an answer
 * goes to whoever asked in its own account. In one account with Herald it would go to any subject that the asker names, and be
 * taken for a command there, whatever the user may publish.
 */
const consumerExports = [
  shadow,
  `$JS.API.CONSUMER.INFO.${consumedStream}.*`,
  `$JS.API.CONSUMER.MSG.NEXT.${consumedStream}.*`,
  `$JS.ACK.${consumedStream}.*.>`,
  `$JS.ACK.*.*.${consumedStream}.*.>`,
];

/** A service's account is named after its user, and imports what that may publish: so nothing that is sent for it arrives elsewhere. */
const accountOf = (service: BusService): string => busUsers[service].user;
const importsOf = (service: BusService): string[] =>
  (busUsers[service].permissions?.publish ?? []).filter((one) => one !== answersTo);
const heardBy = (service: BusService): string[] =>
  (Object.keys(readers) as (keyof typeof readers & StreamName)[]).flatMap((stream) =>
    (readers[stream] as readonly BusService[]).includes(service) ? streams[stream].subjects : [],
  );

/** Each subject that services import, for those alone that do. */
const serviceExports = (): string[] => {
  const importers = new Map<string, string[]>();
  for (const service of busServices)
    for (const subject of importsOf(service))
      importers.set(subject, [...(importers.get(subject) ?? []), accountOf(service)]);
  return [
    ...[...importers].map(([subject, accounts]) => exportOf(subject, accounts)),
    ...busServices.flatMap((service) =>
      heardBy(service).map((subject) => `{ stream: ${quoted(subject)}, accounts: [${quoted(accountOf(service))}] }`),
    ),
  ];
};

const section = (name: string, lines: readonly string[], indent: string): string[] =>
  lines.length === 0 ? [] : [`${indent}${name}: [`, ...lines.map((line) => `${indent}  ${line}`), `${indent}]`];

const renderServiceAccount = (service: BusService, credential: BusCredential, indent: string): string =>
  [
    `${indent}${quoted(accountOf(service))}: {`,
    `${indent}  users: [`,
    renderNatsUser(busUsers[service], credential, `${indent}    `),
    `${indent}  ]`,
    ...section(
      "exports",
      askedOf(service).map((subject) => exportOf(subject, [heraldAccount])),
      `${indent}  `,
    ),
    ...section(
      "imports",
      [
        ...[shadow, ...importsOf(service)].map((subject) => importOf(subject)),
        ...heardBy(service).map((one) => `{ stream: { account: ${quoted(heraldAccount)}, subject: ${quoted(one)} } }`),
      ],
      `${indent}  `,
    ),
    `${indent}}`,
  ].join("\n");

/** A consumer's account in nats-server's configuration: its one user, and what that may do imported from Herald's. */
export const renderConsumerAccount = (account: string, { user, credential }: ConsumerUser, indent = ""): string =>
  [
    `${indent}${quoted(account)}: {`,
    `${indent}  users: [`,
    renderNatsUser(user, credential, `${indent}    `),
    `${indent}  ]`,
    ...section(
      "imports",
      [shadow, ...(user.permissions?.publish ?? [])].map((subject) => importOf(subject)),
      `${indent}  `,
    ),
    `${indent}}`,
  ].join("\n");

/** The `accounts` of nats-server's configuration: Herald's with its streams, one for each service and one for each consumer. */
export const renderNatsAccounts = ({ credentials, consumersFile, explain = false }: NatsUsersOptions): string => {
  const comment = (name: BusUserName, indent: string) =>
    explain && purposes[name] !== "" ? [`${indent}# ${purposes[name]}`] : [];
  const names = ["bootstrap", "admin"] as const;
  const opens = { user: busUsers.opens, credential: credentials.opens };
  return [
    "accounts {",
    `  ${heraldAccount}: {`,
    "    jetstream: enabled",
    "    users: [",
    ...names.flatMap((name) => [
      ...comment(name, "      "),
      renderNatsUser(busUsers[name], credentials[name], "      "),
    ]),
    "    ]",
    ...(explain ? ["    # For consumers, whose accounts import theirs; and for each service what it does."] : []),
    ...section("exports", [...consumerExports.map((one) => exportOf(one)), ...serviceExports()], "    "),
    ...(explain ? ["    # What the services are asked."] : []),
    ...section(
      "imports",
      busServices.flatMap((service) => askedOf(service).map((subject) => importOf(subject, accountOf(service)))),
      "    ",
    ),
    "  }",
    ...busServices.flatMap((service) => [
      ...comment(service, "  "),
      renderServiceAccount(service, credentials[service], "  "),
    ]),
    ...comment("opens", "  "),
    renderConsumerAccount("consumers-opens", opens, "  "),
    ...(explain ? ["  # More of them: `npm run consumer -- add` writes what goes into that file."] : []),
    ...(consumersFile === undefined ? [] : [`  include ${quoted(consumersFile)}`]),
    "}",
    "",
  ].join("\n");
};
