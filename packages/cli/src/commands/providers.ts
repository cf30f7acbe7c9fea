import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import type { ApnsSettings, ProviderSettings, ProviderView, TestPush } from "@herald/client";
import { knownValues } from "@herald/client/known-values";
import { Argument, type Command } from "commander";
import type { Context } from "../context.ts";
import { type Add, addDelete, option, repeatable } from "../define.ts";
import { exitCodes, UsageError } from "../failures.ts";

type Name = keyof ProviderSettings;
type Elsewhere = { readonly endpoint?: string; readonly ca?: string };

const names: readonly Name[] = ["apns", "fcm", "webpush"];

const elsewhereOptions = [
  option("--endpoint <url>", "another server, if the operator allows it"),
  option("--ca <file>", "CA certificate of that server, PEM"),
];

const read = (file: string) => readFile(file, "utf8");

const elsewhere = async ({ endpoint, ca }: Elsewhere) => ({
  endpoint,
  ca: ca === undefined ? undefined : await read(ca),
});

const show = ({ record }: Context, provider: Promise<ProviderView>) =>
  record(provider, (view) => [
    ["provider", view.provider],
    ["status", view.status],
    ["paused because", view.paused_reason],
    ["check", view.paused_detail],
    ["next trial", view.next_trial_at],
    // A certificate is not for a table; --json has it.
    ...Object.entries(view.settings).filter(([name]) => name !== "ca"),
    ...(view.problems ?? []).map(({ reason, host, detail }): [string, string] => [
      "problem",
      [reason, host, detail].filter(Boolean).join(": "),
    ]),
    ["updated", view.updated_at],
  ]);

/** Apple names the file `AuthKey_<key id>.p8`. */
export const keyIdOf = (file: string): string | undefined =>
  /^AuthKey_([A-Za-z0-9]{10})\.p8$/.exec(basename(file))?.[1];

type ApnsOptions = Elsewhere & {
  readonly key: string;
  readonly keyId?: string;
  readonly teamId?: string;
  readonly certificate?: string;
  readonly bundleId: string;
  readonly furtherBundleId?: string[];
  readonly environment: string;
};

const apnsSettings = async (options: ApnsOptions) => {
  const { key, keyId, teamId, certificate, bundleId, furtherBundleId, environment, ...rest } = options;
  const further = furtherBundleId && { bundle_ids: furtherBundleId };
  const common = { private_key: await read(key), bundle_id: bundleId, environment, ...(await elsewhere(rest)) };
  if (certificate !== undefined) return { ...common, ...further, certificate: await read(certificate) } as ApnsSettings;
  const id = keyId ?? keyIdOf(key);
  if (id === undefined)
    throw new UsageError(`The file name ${key} does not contain the key id.`, "Give its 10 characters as --key-id.");
  if (teamId === undefined)
    throw new UsageError("A .p8 key needs the team's id.", "Give its 10 characters as --team-id.");
  return { ...common, ...further, key_id: id, team_id: teamId } as ApnsSettings;
};

type TestOptions = {
  readonly pushToken: string;
  readonly platform?: TestPush["platform"];
  readonly environment?: TestPush["environment"];
  readonly tokenKind?: TestPush["token_kind"];
  readonly p256dh?: string;
  readonly auth?: string;
};

const testPush = ({ pushToken: token, platform, environment, tokenKind, p256dh, auth }: TestOptions): TestPush => ({
  token,
  platform,
  environment,
  token_kind: tokenKind,
  ...(p256dh !== undefined && auth !== undefined && { keys: { p256dh, auth } }),
});

export const addProviders = (group: Command, add: Add) => {
  const set = group.command("set").description("Set a provider's credentials");
  const put = async <Provider extends Name>(context: Context, name: Provider, settings: ProviderSettings[Provider]) =>
    show(context, context.admin().providers.set(context.project(), name, settings));

  add<ApnsOptions>(set, {
    usage: "apns",
    does: "Set APNs credentials: a .p8 key, or a certificate with its key",
    options: [
      option(
        "--key <file>",
        "AuthKey_….p8 of the Apple developer account, or the certificate's key",
      ).makeOptionMandatory(),
      option("--bundle-id <id>", "of the app, such as com.example.app").makeOptionMandatory(),
      repeatable("--further-bundle-id <id>", "another app of the team, which its devices name; repeatable"),
      option("--team-id <id>", "10 characters"),
      option("--key-id <id>", "10 characters; default: taken from the file name"),
      option("--certificate <file>", "PEM, instead of team and key id"),
      option("--environment <environment>", "for devices that do not name theirs")
        .choices(knownValues.environment)
        .default("production"),
      ...elsewhereOptions,
    ],
    examples: [
      [
        "provider set apns --key AuthKey_ABC123DEFG.p8 --team-id TEAM123456 --bundle-id com.example.app",
        "one key serves all apps of a team",
      ],
    ],
    run: async (context, _, options) => put(context, "apns", await apnsSettings(options)),
  });
  add<Elsewhere & { serviceAccount: string }>(set, {
    usage: "fcm",
    does: "Set FCM credentials: Firebase's service account JSON",
    options: [
      option("--service-account <file>", "Firebase console, Project settings, Service accounts").makeOptionMandatory(),
      ...elsewhereOptions,
    ],
    examples: [["provider set fcm --service-account service-account.json", "the file goes in as it is"]],
    run: async (context, _, { serviceAccount, ...rest }) =>
      put(context, "fcm", { service_account: JSON.parse(await read(serviceAccount)), ...(await elsewhere(rest)) }),
  });
  add<Elsewhere & { subject: string; site?: string; publicKey?: string; privateKey?: string }>(set, {
    usage: "webpush",
    does: "Set Web Push: creates a key pair unless you give one",
    options: [
      option("--subject <url>", "mailto: or https: contact for push services").makeOptionMandatory(),
      option("--site <origin>", "of the web app: lets Safari show notifications without the service worker"),
      option("--public-key <key>", "base64url"),
      option("--private-key <file>", "a file with the private key, base64url"),
      ...elsewhereOptions,
    ],
    examples: [
      ["provider set webpush --subject mailto:push@example.com", "shows the public key that browsers subscribe with"],
    ],
    run: async (context, _, { subject, site, publicKey, privateKey, ...rest }) => {
      const key = privateKey === undefined ? undefined : (await read(privateKey)).trim();
      const keys = { public_key: publicKey, private_key: key };
      await put(context, "webpush", { subject, site, ...keys, ...(await elsewhere(rest)) });
    },
  });

  const provider = (command: Command) => command.addArgument(new Argument("<provider>", "which one").choices(names));
  provider(
    add(group, "get", "Show a provider's settings without secrets, its status and problems", async (context, [name]) =>
      show(context, context.admin().providers.get(context.project(), name as Name)),
    ),
  );
  provider(
    add<TestOptions>(group, {
      usage: "test",
      does: "Send one test push and show the response of the provider",
      options: [
        option("--push-token <token>", "the device's token, or a subscription's endpoint").makeOptionMandatory(),
        option("--platform <platform>", "fcm: of the device (default: android)").choices(knownValues.platform),
        option("--environment <environment>", "apns: of the device").choices(knownValues.environment),
        option("--token-kind <kind>", "fcm: registration token or Installation ID").choices(knownValues.tokenKind),
        option("--p256dh <key>", "webpush: the subscription's key"),
        option("--auth <secret>", "webpush: the subscription's secret"),
      ],
      examples: [
        ["provider test apns --push-token 00fc13ad… --environment sandbox", "works while the provider is paused"],
      ],
      run: async ({ admin, project, record }, [name], options) => {
        const tested = await admin().providers.test(project(), name as Name, testPush(options));
        await record(tested, () => [
          ["result", tested.result],
          ["provider response", tested.provider_reason],
          ["message id", tested.provider_id],
          ["", tested.detail],
        ]);
        return tested.result === "accepted" ? exitCodes.ok : exitCodes.failed;
      },
    }),
  );
  provider(
    addDelete(group, add, {
      usage: "delete",
      does: "Delete a provider's settings",
      question: (name, { project }) => `Delete the ${name} settings of ${project()}?`,
      run: ({ admin, project }, name) => admin().providers.delete(project(), name as Name),
    }),
  );
};
