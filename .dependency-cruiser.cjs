/** The dependency rule: contracts ← { rules ← payload; kit } ← { bus, mongo, http2-client } ← service ← services. Each rule says what breaks when it is broken. */
const tests = "\\.(unit|int|e2e|scenario)\\.test\\.ts$|\\.suite\\.ts$|/test/";
/** The slice of webhooks has its domain beside its stores. */
const pure = "^services/[^/]+/src/domain/|^services/analytics/src/webhooks/webhook-(message|attempt)\\.ts$";
const only = (name, comment, who, what) => ({
  name,
  comment,
  severity: "error",
  from: { path: who, pathNot: tests },
  to: { path: what },
});

module.exports = {
  forbidden: [
    {
      name: "no-circles",
      comment: "A circle of imports has no layer.",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "bundler-in-its-own-process",
      comment:
        "The bundler takes up to 700 MB and keeps them: the launcher, a test or a bench would hold them as long as it runs.",
      severity: "error",
      from: {
        path: "^(packages|services|tools|e2e|bench)/",
        pathNot: `^tools/bundle/src/bundler\\.ts$|${tests}`,
      },
      to: { path: "node_modules/rolldown/|^tools/bundle/src/bundler\\.ts$" },
    },
    only(
      "contracts-stand-alone",
      "Contracts depend on zod alone: every service and package reads them.",
      "^packages/contracts/src",
      "^(packages/(?!contracts/)|services/)|node_modules/(?!zod/)",
    ),
    {
      name: "rules-are-pure",
      comment: "What services must compute alike: no input, no output, no clock.",
      severity: "error",
      from: { path: "^packages/rules/src", pathNot: tests },
      to: { pathNot: "^packages/(rules|contracts)/|^(node:)?crypto$" },
    },
    only(
      "kit-knows-contracts",
      "Every service uses it: it knows no notification.",
      "^packages/kit/src",
      "^packages/(payload|rules)/",
    ),
    only(
      "payload-and-kit-know-contracts",
      "Payload and kit are below the bus and the database.",
      "^packages/(payload|kit)/src",
      "^(packages/(bus|mongo|http2-client|service|simulators)/|services/)",
    ),
    only(
      "payload-is-pure",
      "The gateway weighs what dispatch renders: no input, no output.",
      "^packages/payload/src",
      "^packages/kit/",
    ),
    only(
      "bus-and-mongo-know-kit",
      "The bus and the database do not know of each other, nor of a service.",
      "^packages/(bus|mongo)/src",
      "^(packages/(payload|rules|http2-client|service|simulators)/|services/)",
    ),
    only(
      "http2-client-knows-kit",
      "The client sends bytes to an origin: it knows no message of Herald's, no broker and no database.",
      "^packages/http2-client/src",
      "^(packages/(?!http2-client/|kit/)|services/)",
    ),
    {
      name: "client-stands-alone",
      comment: "The client is installed without other packages: its types are made from the contracts, by a test.",
      severity: "error",
      from: { path: "^packages/client/src", pathNot: tests },
      to: { pathNot: "^packages/client/src" },
    },
    only(
      "cli-calls-the-client",
      "The command line does nothing that the client cannot.",
      "^packages/cli/src",
      "^(packages/(?!cli/|client/)|services/)",
    ),
    only(
      "console-calls-the-client",
      "The console does nothing that the client cannot.",
      "^packages/console/src",
      "^(packages/(?!console/|client/)|services/)",
    ),
    only(
      "service-knows-no-service",
      "What all services with a database share is below each of them.",
      "^packages/service/src",
      "^(packages/(payload|rules|http2-client|simulators)/|services/)",
    ),
    { ...only("bus-without-mongo", "The bus stores nothing.", "^packages/bus/src", "^packages/mongo/") },
    {
      ...only(
        "mongo-without-bus",
        "The outbox gets its publisher as a function.",
        "^packages/mongo/src",
        "^packages/bus/",
      ),
    },
    only(
      "web-stands-alone",
      "Browsers load it: it depends on nothing, and says in its own few types what the contracts say.",
      "^packages/web/src",
      "^(packages/(?!web/)|services/)|node_modules/",
    ),
    only(
      "react-native-stands-alone",
      "Phones load it: it depends on nothing but its peers.",
      "^packages/react-native/src",
      "^(packages/(?!react-native/)|services/)|node_modules/",
    ),
    {
      name: "services-meet-on-the-bus",
      comment: "A service never imports a service: they are deployed apart.",
      severity: "error",
      from: { path: "^services/([^/]+)/", pathNot: tests },
      to: { path: "^services/", pathNot: "^services/$1/" },
    },
    {
      name: "test-parts-stay-in-tests",
      comment: "Simulators, tools and test fixtures never ship.",
      severity: "error",
      from: { path: "^(services|packages/(?!simulators/))", pathNot: tests },
      to: { path: "^(tools/|packages/(simulators/|[^/]+/test/))" },
    },
    {
      name: "simulators-without-tools",
      comment: "The simulators are published, and tools are not.",
      severity: "error",
      from: { path: "^packages/simulators/src/", pathNot: tests },
      to: { path: "^tools/" },
    },
    {
      name: "nats-only-in-bus",
      comment: "Ack, nak and consumer traps are handled in one place.",
      severity: "error",
      from: { path: "^(packages/(?!bus/)|services/|tools/(?!testing/)|e2e/|bench/|infra/)" },
      to: { path: "node_modules/@nats-io/|^@nats-io/" },
    },
    {
      name: "mongodb-only-in-stores",
      comment: "Queries stand beside the indexes that serve them.",
      severity: "error",
      from: {
        path: "^(packages|services)/",
        pathNot: `^packages/mongo/|^services/[^/]+/src/(stores/|webhooks/[a-z-]+-store\\.ts$)|${tests}`,
      },
      to: { path: "node_modules/mongodb/|^mongodb$" },
    },
    {
      name: "domain-is-pure",
      comment: "The domain is pure: no I/O, no clock.",
      severity: "error",
      from: { path: pure, pathNot: tests },
      to: {
        pathNot: `${pure}|^packages/(contracts|rules)/|node_modules/(zod|vitest|fast-check)/|^crypto$|^node:crypto$`,
      },
    },
    {
      name: "one-entry-per-package",
      comment: "What a package exports is what its index lists.",
      severity: "error",
      from: { path: "^(packages|services|tools|e2e|bench|examples|infra)/([^/]+)/" },
      to: {
        path: "^(packages|tools)/([^/]+)/(src|test)/",
        pathNot:
          "^(packages|tools)/[^/]+/(src|test)/index\\.ts$|^packages/bus/src/permissions/index\\.ts$|^packages/client/src/known-values/index\\.ts$|^packages/payload/src/liquid-parser/index\\.ts$|^packages/simulators/src/(webpush/decrypt|foreign-site)\\.ts$|^tools/docs/src/deployed-parts\\.ts$|^$1/$2/",
      },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    // What Herald builds, and not what libraries ship.
    exclude: { path: "^((packages|services)/[^/]+|infra/site)/dist/" },
    tsConfig: { fileName: "tsconfig.base.json" },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["@herald/source", "import", "node", "default"],
    },
    parser: "swc",
  },
};
