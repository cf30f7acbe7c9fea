/** The simulators of the push services in a cluster, for kind.ts: the chart does not contain them. */

const labels = { "app.kubernetes.io/name": "simulators" };
const ports = { control: 8090, apns: 8443, fcm: 8444, webpush: 8445 };

/** What Herald needs to send to them: permission, and a way through the network. */
export const valuesForSimulators = {
  dispatch: { config: { HERALD_DISPATCH_CUSTOM_ENDPOINTS: true } },
  networkPolicies: {
    operators: [{ podSelector: { matchLabels: labels } }],
    extraEgress: [
      {
        ports: [ports.apns, ports.fcm, ports.webpush].map((port) => ({ port })),
        to: [{ podSelector: { matchLabels: labels } }],
      },
    ],
  },
};

/** @param gateway the address of the gateway that opens are reported to */
export const simulatorObjects = (image: string, gateway: string) => [
  {
    ...{ apiVersion: "v1", kind: "Service", metadata: { name: "simulators", labels } },
    spec: { selector: labels, ports: Object.entries(ports).map(([name, port]) => ({ name, port })) },
  },
  {
    ...{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "simulators", labels } },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          securityContext: {
            ...{ runAsNonRoot: true, runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000 },
            seccompProfile: { type: "RuntimeDefault" },
          },
          containers: [
            {
              ...{ name: "simulators", image, imagePullPolicy: "IfNotPresent" },
              env: Object.entries({
                HERALD_SIMULATORS_HOST: "0.0.0.0",
                HERALD_SIMULATORS_PUBLIC_HOST: "simulators",
                HERALD_SIMULATORS_CONTROL_PORT: String(ports.control),
                HERALD_SIMULATORS_APNS_PORT: String(ports.apns),
                HERALD_SIMULATORS_FCM_PORT: String(ports.fcm),
                HERALD_SIMULATORS_WEBPUSH_PORT: String(ports.webpush),
                HERALD_SIMULATORS_GATEWAY: gateway,
                HERALD_SIMULATORS_IDENTITY_FILE: "/data/identity.json",
                HERALD_SIMULATORS_SUBSCRIPTIONS_FILE: "/data/subscriptions.ndjson",
              }).map(([name, value]) => ({ name, value })),
              readinessProbe: { httpGet: { path: "/livez", port: ports.control }, periodSeconds: 2 },
              securityContext: {
                ...{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true },
                capabilities: { drop: ["ALL"] },
              },
              volumeMounts: [{ name: "data", mountPath: "/data" }],
            },
          ],
          volumes: [{ name: "data", emptyDir: {} }],
        },
      },
    },
  },
];
