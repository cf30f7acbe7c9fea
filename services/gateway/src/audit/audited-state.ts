/** Text of these fields is no secret and says what a change is about. Every other text is masked, so a new field is safe until it is listed. */
const shown: ReadonlySet<string> = new Set([
  "action",
  "algorithm",
  "bundle_id",
  "closed",
  "created_at",
  "dead_letters",
  "durable",
  "enabled",
  "endpoint",
  "environment",
  "events",
  "expires_at",
  "id",
  "key_id",
  "name",
  "platform",
  "protected_metadata",
  "provider",
  "public_key",
  "role",
  "rotated_at",
  "scopes",
  "status",
  "subject",
  "team_id",
  "updated_at",
]);

const maxText = 200;
const maxItems = 100;
const maxDepth = 5;

const stateOf = (value: unknown, name: string, depth: number): unknown => {
  if (typeof value === "string") return shown.has(name) ? value.slice(0, maxText) : "[masked]";
  if (typeof value !== "object" || value === null) return value;
  if (depth === maxDepth) return "[masked]";
  if (Array.isArray(value)) return value.slice(0, maxItems).map((item) => stateOf(item, name, depth + 1));
  return Object.fromEntries(
    Object.entries(value)
      .slice(0, maxItems)
      .map(([key, inner]) => [key.slice(0, maxText), stateOf(inner, key, depth + 1)]),
  );
};

/** A body or an answer as an audit row shows it: bounded, and without secrets. */
export const auditedState = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (stateOf(value, "", 0) as Record<string, unknown>)
    : undefined;

type SendBody = {
  readonly notification?: { readonly targets?: readonly unknown[]; readonly dry_run?: boolean };
  readonly notifications?: readonly unknown[];
};

/** Whether a body asks what a send would do: it changes nothing, and the console asks while its operator types. */
export const isDryRun = (body: unknown): boolean => (body as SendBody | undefined)?.notification?.dry_run === true;

/** Of a send only its size: titles and targets are personal data, which an audit row would keep after a user is erased. */
export const auditedSend = (body: unknown): Record<string, unknown> => {
  const { notification, notifications } = body as SendBody;
  return notifications === undefined
    ? { targets: notification?.targets?.length ?? 0 }
    : { notifications: notifications.length };
};
