/**
 * How each block of a page that people copy from is held, by page and heading: `run`, `rendered`, `compiled` or `read` by a file, which names
 * the page; or `shown`, with the reason why nothing runs it. `*`: all headings that are not named. A heading with several blocks that are
 * held differently has one entry for each, in order.
 */
type Held = `${"run" | "rendered" | "compiled" | "read"} ${string}` | `shown: ${string}`;

const documents = "e2e/documents.scenario.test.ts";
const examples = "e2e/document-blocks.unit.test.ts";
const unit = (of: string): Held => `read ${examples}: ${of}`;
const notification = unit("the API's schema takes it");
const kitCalls = unit("the kit has every call");
const needs = (what: string): Held => `shown: needs ${what}`;
const archive: Held = "run e2e/compose/archive.ts";
const installed: Held = "run e2e/packages/installed.packages.test.ts";
const started: Held = "run e2e/npm-start.scenario.test.ts";
const composed: Held = "run e2e/compose/main.ts";
const rendered: Held = "rendered e2e/chart/render.chart.test.ts";
const webPage: Held = "run e2e/browser/connect-web.browser.test.ts";
const moved = { Import: "run e2e/move-to-herald.scenario.test.ts" } satisfies Record<string, Held>;

export const heldBlocks: Readonly<Record<string, Readonly<Record<string, Held | readonly Held[]>>>> = {
  "README.md": {
    Start: ["run e2e/npm-start.scenario.test.ts", started, started, unit("npm has the script")],
    "Send from TypeScript": started,
    "From a release": ["run e2e/packages/build-release.ts", installed, archive],
    "How a notification travels": "shown: a picture",
    Deploy: [needs("an engine; test:one does the same"), composed],
  },
  "docs/tutorial/first-push.md": { "*": started },
  "docs/how-to/ask-a-second-person.md": { "*": `run ${documents}` },
  "docs/how-to/back-up.md": {
    "With compose": composed,
    Elsewhere: needs("the images and a database elsewhere; infra/backup runs the same command"),
  },
  "docs/how-to/clients-in-other-languages.md": { "*": "run e2e/packages/generated-clients.packages.test.ts" },
  "docs/how-to/connect-an-android-app.md": {
    "1. Install": unit("the release checks its version"),
    "2. Configure": kitCalls,
    "*": kitCalls,
  },
  "docs/how-to/connect-flutter.md": { "1. Install": unit("the example's pubspec has them") },
  "docs/how-to/connect-providers.md": {
    "When a provider limits Herald": "shown: a setting of ntfy's",
    "*": `run ${documents}`,
  },
  "docs/how-to/connect-react-native.md": {
    "1. Install": unit("the package asks for these peers"),
    "2. Configure": unit("the plugin reads its settings"),
    "*": kitCalls,
  },
  "docs/how-to/connect-swift.md": { "2. Configure": kitCalls, "*": kitCalls },
  "docs/how-to/connect-web.md": {
    "1. Install": webPage,
    "2. Configure": webPage,
    "8. Receive": notification,
    "*": kitCalls,
  },
  "docs/how-to/connect-your-app.md": { "*": "run e2e/connect-your-app.scenario.test.ts" },
  "docs/how-to/consume-events.md": {
    "A user of your own": [
      "run e2e/consumers.scenario.test.ts",
      needs("containers; npm run consumer is the same program"),
    ],
    "*": "run e2e/consumers.scenario.test.ts",
  },
  "docs/how-to/deploy.md": {
    "On one host, with compose": composed,
    "With TLS": [composed, composed, needs("an engine and a name; e2e/tls.scenario.test.ts runs the same Caddyfile")],
    "On Kubernetes": [needs("an engine; test:compose builds the same"), ...Array<Held>(7).fill(rendered)],
    "Out through a proxy": [unit("its variables exist"), rendered],
  },
  "docs/how-to/export-data.md": {
    "From the command line": `run ${documents}`,
    "From a program": `run ${documents}`,
    "*": "run e2e/exports.scenario.test.ts",
  },
  "docs/how-to/follow-up.md": { "*": "run e2e/follow-up.scenario.test.ts" },
  "docs/how-to/keep-a-project-in-a-file.md": {
    "Keep a project in a file": "run packages/cli/src/apply/project-file.unit.test.ts",
    "An existing project": `run ${documents}`,
  },
  "docs/how-to/leave-herald.md": { "*": "run e2e/exports.scenario.test.ts" },
  "docs/how-to/let-people-choose.md": { "*": `run ${documents}` },
  "docs/how-to/live-activities.md": { "*": `run ${documents}` },
  "docs/how-to/measure-campaigns.md": { "Send and ask": [notification, `run ${documents}`] },
  "docs/how-to/move-from-firebase.md": moved,
  "docs/how-to/move-from-gorush.md": moved,
  "docs/how-to/move-from-onesignal.md": { ...moved, Export: "read e2e/move-to-herald.scenario.test.ts" },
  "docs/how-to/move-from-parse.md": moved,
  "docs/how-to/move-from-pinpoint.md": moved,
  "docs/how-to/move-from-pnta.md": moved,
  "docs/how-to/move-from-sns.md": moved,
  "docs/how-to/observe.md": { Metrics: "read infra/observability/observability.unit.test.ts" },
  "docs/how-to/one-container.md": {
    "When to leave it": "run e2e/compose/one/backup.ts",
    "*": needs("an engine; test:one does the same"),
  },
  "docs/how-to/operators.md": {
    "The first operators": [`run ${documents}`, needs("compose or a cluster; infra/init prints the same request")],
    "*": `run ${documents}`,
  },
  "docs/how-to/push-types.md": { "*": `run ${documents}` },
  "docs/how-to/rebuild-statistics.md": { "*": unit("npm has the script") },
  "docs/how-to/rotate-vapid-keys.md": {
    "Before you begin": [
      "run e2e/rotate-vapid-keys.scenario.test.ts",
      unit("it is JavaScript; the browser kit does the same"),
    ],
    "*": "run e2e/rotate-vapid-keys.scenario.test.ts",
  },
  "docs/how-to/send-at-local-time.md": {
    "Give devices their time zone": [notification, `run ${documents}`],
    "*": notification,
  },
  "docs/how-to/send-many.md": { "The response": notification, "*": `run ${documents}` },
  "docs/how-to/send-to-everybody.md": { Plan: [`run ${documents}`, notification], "*": `run ${documents}` },
  "docs/how-to/set-limits.md": { "Set limits and quotas": "shown: an answer's headers", "*": `run ${documents}` },
  "docs/how-to/sign-in-with-your-company.md": {
    Groups: "run e2e/sign-in.scenario.test.ts",
    "On Kubernetes": [needs("a cluster"), rendered],
    Herald: "run e2e/sign-in.scenario.test.ts",
    "*": unit("its variables exist"),
  },
  "docs/how-to/sign-users-in.md": { "*": "run e2e/sign-users-in.scenario.test.ts" },
  "docs/how-to/stop-a-send.md": { "*": `run ${documents}` },
  "docs/how-to/upgrade.md": {
    "3. Bootstrap and the services": [rendered, needs("an earlier version")],
    "With the archive": needs("an earlier version"),
  },
  "docs/how-to/use-postgresql.md": {
    "With your own PostgreSQL": needs("a PostgreSQL elsewhere; infra/postgresql/users runs the same"),
    "*": composed,
  },
  "docs/how-to/webhooks.md": { "*": "run e2e/webhooks-page.scenario.test.ts" },
  "docs/how-to/write-templates.md": { "By command line": `run ${documents}`, "*": notification },
  "docs/reference/content.md": { "*": notification },
  "docs/reference/targeting.md": { Conditions: [unit("the conditions parse"), "shown: the grammar"] },
  "docs/reference/versions.md": { "*": needs("a release that is published") },
  "packages/cli/README.md": {
    "herald, the command line": needs("a published package; a release's file is installed in its place"),
    "First push": started,
  },
  "packages/client/README.md": {
    Start: [
      needs("a published package; a release's file is installed in its place"),
      "run e2e/client-recipes.scenario.test.ts",
    ],
    "*": "run e2e/client-recipes.scenario.test.ts",
  },
  "packages/react-native/README.md": { "*": kitCalls },
  "packages/simulators/README.md": {
    "In your tests": installed,
    Scripts: "read packages/simulators/src/script/rule.unit.test.ts",
  },
  "packages/web/README.md": { "*": kitCalls },
};
