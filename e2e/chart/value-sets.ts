import type { Values } from "./helm.ts";

export const digest = `sha256:${"0123456789abcdef".repeat(4)}`;
/** The images that the chart runs. */
export const parts = ["bus", "gateway", "registry", "dispatch", "analytics"] as const;
const namespace = (name: string) => ({ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": name } } });

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
    },
    pods: {
      volumes: [{ name: "groups", configMap: { name: "herald-groups" } }],
      volumeMounts: [{ name: "groups", mountPath: "/etc/herald", readOnly: true }],
    },
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
    proxy: { url: "http://proxy.example.com:3128", noProxy: "push.example.com,10.0.0.0/8" },
  },
  PostgreSQL: { database: { ferretdb: { enabled: true }, prefix: "push" } },
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
  ["/", { gatway: {} }],
];
