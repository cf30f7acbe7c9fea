import type { Values } from "./helm.ts";

export const digest = `sha256:${"0123456789abcdef".repeat(4)}`;
/** The images that the chart runs. */
export const parts = ["bus", "gateway", "registry", "dispatch", "analytics"] as const;
const namespace = (name: string) => ({ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": name } } });

/** A variable from a Secret. */
export const from = (name: string, secret: string, key: string) => ({
  name,
  valueFrom: { secretKeyRef: { name: secret, key } },
});

/** Installations that differ in what the chart makes. */
export const valueSets: Readonly<Record<string, Values>> = {
  defaults: {},
  evaluation: { nats: { replicas: 1 }, gateway: { replicas: 1, config: { HERALD_GATEWAY_TRUST_PROXY: 0 } } },
  production: {
    images: {
      repository: "registry.example.com/herald",
      pullSecrets: ["registry-login"],
      ...Object.fromEntries(parts.map((part) => [part, { digest }])),
    },
    nats: { url: "tls://nats-0.example.com:4223,tls://nats-1.example.com:4223" },
    gateway: {
      config: { HERALD_GATEWAY_TRUST_PROXY: 2, HERALD_GATEWAY_QUOTA_SENDS: 20_000_000, HERALD_LOG_LEVEL: "warn" },
      autoscaling: { enabled: true, maxReplicas: 12 },
    },
    dispatch: { config: { HERALD_DISPATCH_RETENTION: "30d" }, autoscaling: { enabled: true, minReplicas: 3 } },
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector.observability:4318", OTEL_BSP_MAX_QUEUE_SIZE: 4_000_000 },
    ingress: {
      enabled: true,
      className: "nginx",
      annotations: { "nginx.ingress.kubernetes.io/proxy-buffering": "off" },
      hosts: ["push.example.com"],
      tls: [{ secretName: "push-tls", hosts: ["push.example.com"] }],
    },
    networkPolicies: {
      clients: [namespace("ingress-nginx")],
      operators: [namespace("vpn")],
      nats: [{ ipBlock: { cidr: "10.1.0.0/16" } }],
      database: [{ ipBlock: { cidr: "10.2.0.0/16" } }],
      internet: [{ ipBlock: { cidr: "0.0.0.0/0", except: ["10.0.0.0/8"] } }],
      extraEgress: [{ ports: [{ port: 4318 }], to: [namespace("observability")] }],
    },
    monitoring: { serviceMonitor: true, prometheusRule: true, dashboard: true, labels: { release: "prometheus" } },
  },
  "KEDA and Gateway API": {
    keda: { enabled: true },
    nats: { monitoring: "nats-headless.messaging.svc:8222" },
    registry: { scaling: { maxReplicas: 4, "registry-expand": 50 } },
    httpRoute: {
      enabled: true,
      annotations: { "example.com/owner": "platform" },
      parentRefs: [{ name: "public", namespace: "gateways" }],
      hostnames: ["push.example.com"],
    },
  },
  "sign-in": {
    gateway: {
      config: {
        HERALD_GATEWAY_OIDC_ISSUER: "https://id.example.com:8443/realms/company",
        HERALD_GATEWAY_OIDC_CLIENT_ID: "herald",
        HERALD_GATEWAY_OIDC_URL: "https://herald.example.com",
        HERALD_GATEWAY_OIDC_GROUPS_FILE: "/etc/herald/groups.yaml",
      },
      volumes: [{ name: "groups", configMap: { name: "herald-groups" } }],
      volumeMounts: [{ name: "groups", mountPath: "/etc/herald", readOnly: true }],
    },
  },
  "sign-in by variables of Secrets": {
    gateway: {
      extraEnv: [
        { name: "HERALD_GATEWAY_OIDC_ISSUER", value: "https://id.example.com:9443" },
        from("HERALD_GATEWAY_OIDC_CLIENT_ID", "company", "client"),
        { name: "HERALD_GATEWAY_OIDC_URL", value: "https://herald.example.com" },
        { name: "HERALD_GATEWAY_OIDC_CLIENT_SECRET_FILE", value: "/etc/herald/secret" },
        from("HERALD_ADMIN_TOKEN", "from-a-vault", "token"),
      ],
      volumes: [{ name: "company", secret: { secretName: "company" } }],
      volumeMounts: [{ name: "company", mountPath: "/etc/herald", readOnly: true }],
    },
    dispatch: { extraEnv: [{ name: "HERALD_NATS_CREDS_FILE", value: "/etc/nats/dispatch.creds" }] },
    extraEnv: [from("OTEL_EXPORTER_OTLP_HEADERS", "collector", "headers")],
  },
  "sign-in at Google": {
    gateway: {
      config: {
        HERALD_GATEWAY_OIDC_ISSUER: "https://accounts.google.com",
        HERALD_GATEWAY_OIDC_CLIENT_ID: "herald",
        HERALD_GATEWAY_OIDC_URL: "https://herald.example.com",
      },
    },
    networkPolicies: { identityProvider: [{ ipBlock: { cidr: "10.3.0.0/16" } }] },
  },
  "through a proxy": {
    proxy: { secret: "herald-proxy", port: 8080 },
    gateway: {
      config: {
        HERALD_GATEWAY_OIDC_ISSUER: "https://id.example.com",
        HERALD_GATEWAY_OIDC_CLIENT_ID: "herald",
        HERALD_GATEWAY_OIDC_URL: "https://herald.example.com",
      },
    },
    analytics: { config: { HERALD_PROXY_RESOLVES: true } },
    networkPolicies: { proxy: [{ ipBlock: { cidr: "10.4.0.0/16" } }] },
  },
  "through a proxy in part": {
    proxy: { url: "http://proxy.example.com:8888", noProxy: "push.example.com,10.0.0.0/8" },
  },
  PostgreSQL: { database: { ferretdb: { enabled: true }, prefix: "push" } },
  // A null removes a default.
  "without defaults": {
    gateway: { config: null, resources: null, extraEnv: null, volumes: null, volumeMounts: null },
    bootstrap: { resources: null, extraEnv: null },
    pods: { labels: null, volumes: null, volumeMounts: null },
    monitoring: { labels: null },
    env: { OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: 0.25 },
    extraEnv: null,
  },
  "own pods": {
    networkPolicies: { enabled: false },
    images: { tag: "0.1.0-rc.1", pullPolicy: "Always" },
    env: { NODE_EXTRA_CA_CERTS: "/etc/ca/ca.crt" },
    pods: {
      annotations: { "example.com/team": "push" },
      labels: { "example.com/cost-center": "42" },
      nodeSelector: { "kubernetes.io/arch": "arm64" },
      tolerations: [{ key: "push", operator: "Exists", effect: "NoSchedule" }],
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: "pool", operator: "In", values: ["push"] }] }],
          },
        },
      },
      priorityClassName: "system-cluster-critical",
      volumes: [{ name: "ca", configMap: { name: "ca" } }],
      volumeMounts: [{ name: "ca", mountPath: "/etc/ca", readOnly: true }],
    },
  },
};

/** Values that Helm refuses, and the path that it names. */
export const wrongValues: readonly (readonly [string, Values])[] = [
  ["/gateway", { gateway: { replica: 3 } }],
  ["/gateway/replicas", { gateway: { replicas: "three" } }],
  ["/gateway/config", { gateway: { config: { HERALD_GATEWAY_LIMIT_PROJCT: 1 } } }],
  ["/gateway/config", { gateway: { config: { HERALD_DISPATCH_RETENTION: "30d" } } }],
  ["/gateway/config", { gateway: { config: { HERALD_ADMIN_TOKEN: "a secret in plain text" } } }],
  ["/gateway/config/HERALD_GATEWAY_TRUST_PROXY", { gateway: { config: { HERALD_GATEWAY_TRUST_PROXY: 17 } } }],
  ["/gateway/config/HERALD_LOG_LEVEL", { gateway: { config: { HERALD_LOG_LEVEL: "loud" } } }],
  [
    "/gateway/config/HERALD_GATEWAY_OIDC_ISSUER",
    { gateway: { config: { HERALD_GATEWAY_OIDC_ISSUER: "https://herald:password@id.example.com" } } },
  ],
  ["/proxy/url", { proxy: { url: "http://herald:password@proxy.example.com:3128" } }],
  ["/dispatch/config", { dispatch: { config: { HTTPS_PROXY: "http://proxy.example.com:3128" } } }],
  ["/nats/replicas", { nats: { replicas: 2 } }],
  ["/nats/url", { nats: { url: "nats://user:password@nats:4222" } }],
  ["/images/gateway/digest", { images: { gateway: { digest: "sha256:short" } } }],
  ["/secrets/gateway", { secrets: { gateway: "" } }],
  ["/env", { env: { HERALD_HOST: "127.0.0.1" } }],
  ["/database/port", { database: { port: 0 } }],
  ["/ingress/hosts", { ingress: { hosts: "push.example.com" } }],
  ["/nats/url", { nats: { url: "nats://a:4222,b:4222" } }],
  ["/images/repository", { images: { repository: "Registry.example.com/Herald" } }],
  ["/images/tag", { images: { tag: "0.1.0@sha256:1" } }],
  ["/images/pullSecrets/0", { images: { pullSecrets: ["registry_login"] } }],
  ["/secrets/gateway", { secrets: { gateway: "herald..gateway" } }],
  ["/secrets/gateway", { secrets: { gateway: "g".repeat(254) } }],
  ["/database/prefix", { database: { prefix: "my.herald" } }],
  ["/gateway/replicas", { gateway: { replicas: 3_000_000_000 } }],
  ["/gateway/resources/limits/memory", { gateway: { resources: { limits: { memory: "512MB" } } } }],
  ["/gateway/resources", { gateway: { resources: { limit: { memory: "512Mi" } } } }],
  ["/gateway/extraEnv/0/name", { gateway: { extraEnv: [{ name: "A-B", value: "c" }] } }],
  ["/gateway/extraEnv/0/value", { gateway: { extraEnv: [{ name: "NODE_OPTIONS", value: 3 }] } }],
  ["/gateway/extraEnv/0/valueFrom", { gateway: { extraEnv: [{ name: "NODE_OPTIONS", valueFrom: { secret: {} } }] } }],
  ["/gateway/volumes/0", { gateway: { volumes: [{ name: "groups" }] } }],
  ["/gateway/volumeMounts/0", { gateway: { volumeMounts: [{ name: "groups" }] } }],
  ["/registry/scaling/maxReplicas", { registry: { scaling: { maxReplicas: 1 } } }],
  ["/ingress/hosts/0", { ingress: { hosts: ["https://push.example.com"] } }],
  ["/ingress/hosts/0", { ingress: { hosts: ["push.example.com:443"] } }],
  ["/ingress/tls/0", { ingress: { tls: [{ secret: "push-tls" }] } }],
  ["/ingress/className", { ingress: { className: "Nginx Public" } }],
  ["/ingress/annotations/a", { ingress: { annotations: { a: true } } }],
  ["/httpRoute/parentRefs/0", { httpRoute: { parentRefs: [{ namespace: "gateways" }] } }],
  ["/httpRoute/hostnames/0", { httpRoute: { hostnames: ["push_example.com"] } }],
  ["/pods/labels", { pods: { labels: { "cost center": "42" } } }],
  ["/pods/labels/team", { pods: { labels: { team: "push and pull" } } }],
  ["/pods/tolerations/0/effect", { pods: { tolerations: [{ key: "push", effect: "NoSchedul" }] } }],
  ["/pods/affinity", { pods: { affinity: { nodeAfinity: {} } } }],
  ["/pods/priorityClassName", { pods: { priorityClassName: "High" } }],
  ["/networkPolicies/clients/0", { networkPolicies: { clients: [{ podSelectr: {} }] } }],
  ["/networkPolicies/nats/0/ipBlock/cidr", { networkPolicies: { nats: [{ ipBlock: { cidr: "10.0.0.1" } }] } }],
  ["/networkPolicies/internet/0", { networkPolicies: { internet: [{ ipBlock: { cidr: "::/0" }, podSelector: {} }] } }],
  [
    "/networkPolicies/extraEgress/0/ports/0/port",
    { networkPolicies: { extraEgress: [{ ports: [{ port: 70_000 }] }] } },
  ],
  ["/", { gatway: {} }],
];

const autoscaling = (minReplicas: number, maxReplicas: number) => ({
  autoscaling: { enabled: true, minReplicas, maxReplicas },
});
const oidc = { HERALD_GATEWAY_OIDC_ISSUER: "https://id.example.com" };
const extraEnv = (...list: unknown[]) => ({ gateway: { extraEnv: list } });

/** Values that the API server or a service would refuse later, and the sentence that Helm says instead. */
export const refusedValues: readonly (readonly [string, Values, string?])[] = [
  ['the release\'s name is "7herald"; accepted: a letter first', {}, "7herald"],
  ['the release\'s name is "push.eu"; accepted: a letter first', {}, "push.eu"],
  ["gateway.autoscaling.minReplicas is 7, more than maxReplicas, 6", { gateway: autoscaling(7, 6) }],
  ["dispatch.autoscaling.minReplicas is 7, more than maxReplicas, 6", { dispatch: autoscaling(7, 6) }],
  [
    "gateway.resources.requests.cpu is not set; autoscaling needs it",
    { gateway: { ...autoscaling(2, 6), resources: { requests: { cpu: null } } } },
  ],
  ["ingress.hosts is empty; accepted: at least one name", { ingress: { enabled: true } }],
  ["httpRoute.parentRefs is empty; accepted: at least one Gateway", { httpRoute: { enabled: true } }],
  [
    'dispatch.config.HERALD_DISPATCH_RETENTION is "10d"; accepted: a duration of at least 30d: a number with ms, s, m, h or d',
    { dispatch: { config: { HERALD_DISPATCH_RETENTION: "10d" } } },
  ],
  [
    'registry.config.HERALD_REGISTRY_AUDIT_RETENTION is "1y"; accepted: a duration of at least 62d',
    { registry: { config: { HERALD_REGISTRY_AUDIT_RETENTION: "1y" } } },
  ],
  [
    'analytics.config.HERALD_ANALYTICS_STATISTICS_RETENTION is "70d", less than HERALD_ANALYTICS_RETENTION, "90d"',
    { analytics: { config: { HERALD_ANALYTICS_STATISTICS_RETENTION: "70d" } } },
  ],
  ["gateway.config.HERALD_GATEWAY_OIDC_CLIENT_ID is not set; sign-in needs all of", { gateway: { config: oidc } }],
  [
    'gateway.config.HERALD_GATEWAY_OIDC_ISSUER is "http://id.example.com"; accepted: a URL that begins with https://',
    { gateway: { config: { HERALD_GATEWAY_OIDC_ISSUER: "http://id.example.com" } } },
  ],
  [
    'gateway.config.HERALD_GATEWAY_OIDC_URL is "https://herald.example.com/"; accepted: an origin',
    { gateway: { config: { HERALD_GATEWAY_OIDC_URL: "https://herald.example.com/" } } },
  ],
  ["pods.labels has app.kubernetes.io/component", { pods: { labels: { "app.kubernetes.io/component": "push" } } }],
  ["monitoring.labels has helm.sh/chart", { monitoring: { labels: { "helm.sh/chart": "push" } } }],
  ["proxy.url and proxy.secret are both set", { proxy: { url: "http://proxy.example.com", secret: "herald-proxy" } }],
  [
    "dispatch.resources.requests.memory is 2Gi, more than its limit, 1Gi",
    { dispatch: { resources: { requests: { memory: "2Gi" } } } },
  ],
  ["gateway.extraEnv has HERALD_PORT; leave it out", extraEnv({ name: "HERALD_PORT", value: "80" })],
  ["gateway.extraEnv has https_proxy; set `proxy` instead", extraEnv({ name: "https_proxy", value: "http://a" })],
  ["gateway.extraEnv has HERALD_GATEWAY_LIMITS; accepted", extraEnv({ name: "HERALD_GATEWAY_LIMITS", value: "1" })],
  ["extraEnv has HERALD_LOG_LEVLE; accepted", { extraEnv: [{ name: "HERALD_LOG_LEVLE", value: "debug" }] }],
  ["gateway.extraEnv gives HERALD_ADMIN_TOKEN as a value", extraEnv({ name: "HERALD_ADMIN_TOKEN", value: "secret" })],
  [
    "gateway.extraEnv has NODE_OPTIONS twice",
    extraEnv({ name: "NODE_OPTIONS", value: "a" }, { name: "NODE_OPTIONS", value: "b" }),
  ],
  ["gateway.extraEnv: NODE_OPTIONS needs either value or valueFrom", extraEnv({ name: "NODE_OPTIONS" })],
  [
    'gateway.volumeMounts or pods.volumeMounts names the volume "groups", which is not in their volumes',
    { gateway: { volumeMounts: [{ name: "groups", mountPath: "/etc/herald" }] } },
  ],
  [
    'gateway.volumes and pods.volumes have two volumes "ca"',
    { gateway: { volumes: [{ name: "ca", emptyDir: {} }] }, pods: { volumes: [{ name: "ca", emptyDir: {} }] } },
  ],
];
