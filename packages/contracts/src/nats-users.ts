import { consumedStream } from "./bus-access.ts";
import { type BusUser, type BusUserName, busUsers } from "./bus-users.ts";

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
  gateway: "The services, each with what it does on the bus and an inbox of its own.",
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

/** Where Herald's streams and its own users are. */
const heraldAccount = "HERALD";

/** Where an account imports this, its requests to JetStream leave it; else the server answers itself that the account has none. */
const shadow = "$JS.API.INFO";

/**
 * What the accounts of consumers may import: to ask about, to read and to settle durables of the events. As an import, an answer
 * goes to whoever asked in its own account. In one account with Herald it would go to any subject that the asker names, and be
 * taken for a command there, whatever the user may publish.
 */
const exported = [
  `{ service: "${shadow}" }`,
  `{ service: "$JS.API.CONSUMER.INFO.${consumedStream}.*" }`,
  `{ service: "$JS.API.CONSUMER.MSG.NEXT.${consumedStream}.*", response_type: "stream" }`,
  `{ service: "$JS.ACK.${consumedStream}.*.>" }`,
  `{ service: "$JS.ACK.*.*.${consumedStream}.*.>" }`,
];

/** A consumer's account in nats-server's configuration: its one user, and what that may do imported from Herald's. */
export const renderConsumerAccount = (account: string, { user, credential }: ConsumerUser, indent = ""): string =>
  [
    `${indent}${quoted(account)}: {`,
    `${indent}  users: [`,
    renderNatsUser(user, credential, `${indent}    `),
    `${indent}  ]`,
    `${indent}  imports: [`,
    ...[shadow, ...(user.permissions?.publish ?? [])].map(
      (subject) => `${indent}    { service: { account: ${heraldAccount}, subject: ${quoted(subject)} } }`,
    ),
    `${indent}  ]`,
    `${indent}}`,
  ].join("\n");

/** The `accounts` of nats-server's configuration: Herald's with its users, and one for each consumer. */
export const renderNatsAccounts = ({ credentials, consumersFile, explain = false }: NatsUsersOptions): string => {
  const comment = (name: BusUserName, indent: string) =>
    explain && purposes[name] !== "" ? [`${indent}# ${purposes[name]}`] : [];
  const names = (Object.keys(busUsers) as BusUserName[]).filter((name) => name !== "opens");
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
    ...(explain ? ["    # For consumers, whose accounts import theirs."] : []),
    "    exports: [",
    ...exported.map((line) => `      ${line}`),
    "    ]",
    "  }",
    ...comment("opens", "  "),
    renderConsumerAccount("consumers-opens", opens, "  "),
    ...(explain ? ["  # More of them: `npm run consumer -- add` writes what goes into that file."] : []),
    ...(consumersFile === undefined ? [] : [`  include ${quoted(consumersFile)}`]),
    "}",
    "",
  ].join("\n");
};
