import { type StreamName, streams } from "@herald/contracts";
import { answersTo, askedOf, type BusUser, type BusUserName, busUsers } from "./bus-users.ts";
import { type BusService, busServices, consumedStream, readers } from "./service-permissions.ts";

/** How a user authenticates: a password (or its bcrypt hash), a password from the server's environment, or an nkey's public key. */
export type BusCredential =
  | { readonly password: string }
  | { readonly passwordVariable: string }
  | { readonly nkey: string };

/** The user of an external consumer beside Herald's initial users. */
export type ConsumerUser = { readonly user: BusUser; readonly credential: BusCredential };

/** JSON is valid nats-server syntax. Only variables are unquoted, because quoted ones would be literal text. */
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

/** One entry of `users` in nats-server's configuration. */
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

/** The environment variables of the passwords. */
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
  /** A file beside the configuration with the accounts of external consumers. */
  readonly consumersFile?: string | undefined;
  /** Adds comments for readers of the file. */
  readonly explain?: boolean;
};

/** The account of Herald's streams, whose admin has all permissions. */
const heraldAccount = "HERALD";

/** An account that imports this can send JetStream requests to Herald's account; otherwise the server replies that JetStream is not enabled. */
const shadow = "$JS.API.INFO";

/** JetStream replies to these with any number of messages. */
const answersOften = /^\$JS\.API\.(CONSUMER\.MSG\.NEXT|DIRECT\.GET)\./;

const exportOf = (subject: string, accounts?: readonly string[]): string => {
  const often = answersOften.test(subject) ? ', response_type: "stream"' : "";
  const to = accounts === undefined ? "" : `, accounts: [${accounts.map(quoted).join(", ")}]`;
  return `{ service: ${quoted(subject)}${often}${to} }`;
};

const importOf = (subject: string, account = heraldAccount): string =>
  `{ service: { account: ${quoted(account)}, subject: ${quoted(subject)} } }`;

/**
 * What accounts of consumers may import: reading the info of durables of events, pulling and settling. With an import, replies stay in the
 * caller's account. In Herald's own account a reply would go to any subject that the caller names, and could be taken for a command,
 * whatever the user may publish.
 */
const consumerExports = [
  shadow,
  `$JS.API.CONSUMER.INFO.${consumedStream}.*`,
  `$JS.API.CONSUMER.MSG.NEXT.${consumedStream}.*`,
  `$JS.ACK.${consumedStream}.*.>`,
  `$JS.ACK.*.*.${consumedStream}.*.>`,
];

/** A service's account is named after its user and imports what the user may publish, so its replies never arrive in another account. */
const accountOf = (service: BusService): string => busUsers[service].user;
const importsOf = (service: BusService): string[] =>
  (busUsers[service].permissions?.publish ?? []).filter((one) => one !== answersTo);
const heardBy = (service: BusService): string[] =>
  (Object.keys(readers) as (keyof typeof readers & StreamName)[]).flatMap((stream) =>
    (readers[stream] as readonly BusService[]).includes(service) ? streams[stream].subjects : [],
  );

/** Exports each subject that services import, only to those services. */
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

/** A consumer's account in nats-server's configuration: its user, and imports of everything that the user may do. */
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
