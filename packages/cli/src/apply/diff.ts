import { isDeepStrictEqual } from "node:util";
import type {
  DeclaredKind,
  Herald,
  HeraldAdmin,
  LimitsChange,
  Project,
  ProjectLimit,
  ProjectToken,
  ProviderSettings,
  ProviderView,
  Webhook,
} from "@herald/client";
import { show } from "../terminal/text.ts";
import type { ShapeProblem } from "./check-shape.ts";
import type { KindOfFile, ProjectFile, ProviderName, TokenOfFile, WebhookOfFile } from "./project-file.ts";
import { settingsFingerprint, tokenFingerprint } from "./sources.ts";

/** What the project has, in the sections that the file has. */
export type ProjectState = {
  /** Undefined: there is no project with the key. */
  readonly project: Project | undefined;
  readonly limits: readonly ProjectLimit[];
  readonly kinds: readonly DeclaredKind[];
  readonly providers: readonly ProviderView[];
  readonly tokens: readonly ProjectToken[];
  readonly webhooks: readonly Webhook[];
  /** The content of the files that secrets are written to, by their names in the project file. */
  readonly written: ReadonlyMap<string, string>;
};

/** What a change is made with. */
export type ApplyTarget = {
  readonly admin: HeraldAdmin;
  /** The client of the project, which a change before may have created. */
  readonly herald: () => Herald;
  readonly id: () => string;
  readonly created: (project: Project) => void;
  /** Writes a secret into a new file, by its name in the project file. */
  readonly write: (name: string, make: () => Promise<string | undefined>) => Promise<void>;
};

/** One change of the project. Each is one step: what was done stays done if the next one fails. */
export type ApplyStep = {
  readonly sign: "+" | "~" | "-";
  readonly what: string;
  readonly detail: string;
  readonly make: (target: ApplyTarget) => Promise<unknown>;
};

export type Diff = {
  /** In the order in which they are made. */
  readonly changes: readonly ApplyStep[];
  /** Would remove what the file does not name. */
  readonly removals: readonly ApplyStep[];
  readonly problems: readonly ShapeProblem[];
};

const isSame = (one: unknown, other: unknown): boolean => {
  const comparable = (value: unknown) => (Array.isArray(value) ? value.toSorted() : (value ?? null));
  return isDeepStrictEqual(comparable(one), comparable(other));
};

/** The fields of `wanted` that `now` does not have, as a change and in words. */
const changedFields = <Fields extends object>(wanted: Fields, now: Readonly<Record<string, unknown>>) => {
  const changed = Object.entries(wanted).filter(([name, value]) => value !== undefined && !isSame(value, now[name]));
  const detail = changed.map(([name, value]) => `${name} ${show(now[name])} → ${show(value)}`).join(", ");
  return { change: Object.fromEntries(changed) as Partial<Fields>, detail };
};

const projectChanges = ({ project: { key, ...wanted } }: ProjectFile, { project: now }: ProjectState): ApplyStep[] => {
  if (now === undefined) {
    const { name = key, ...rest } = wanted;
    const create = async ({ admin, created }: ApplyTarget) => {
      // Without a first token: its secret would be lost.
      created((await admin.projects.create({ key, name, first_token: false })).project);
    };
    const update = ({ admin, id }: ApplyTarget) => admin.projects.update(id(), rest);
    const detail = Object.entries(rest).map(([field, value]) => `${field} ${show(value)}`);
    return [
      { sign: "+", what: `project ${key}`, detail: name, make: create },
      ...(detail.length > 0 ? [{ sign: "~" as const, what: "project", detail: detail.join(", "), make: update }] : []),
    ];
  }
  const { change, detail } = changedFields(wanted, now);
  if (detail === "") return [];
  return [{ sign: "~", what: "project", detail, make: ({ admin, id }) => admin.projects.update(id(), change) }];
};

/** Why the file may not set the rule of approval; undefined: it may. What runs in a pipeline must not take the second person away. */
const looserApproval = ({ project: { approval } }: ProjectFile, { project: now }: ProjectState): string | undefined => {
  if (approval === undefined || now?.approval === undefined) return undefined;
  if (approval !== null && approval.devices <= now.approval.devices) return undefined;
  const wanted = approval === null ? "off" : approval.devices;
  return `fewer sends would wait for approval: now those to more than ${now.approval.devices} devices do. A file may lower the number alone; an admin runs \`herald project update ${now.id} --approval ${wanted}\``;
};

const limitChanges = (
  { limits: wanted }: ProjectFile,
  { limits: now }: ProjectState,
): Pick<Diff, "changes" | "removals"> => {
  if (wanted === undefined) return { changes: [], removals: [] };
  const named = wanted as Readonly<Record<string, number | null | undefined>>;
  const set =
    (limits: LimitsChange) =>
    ({ admin, id }: ApplyTarget) =>
      admin.projects.changeLimits(id(), limits);
  const differing = Object.entries(named).filter(([name, value]) => {
    const found = now.find((one) => one.name === name);
    return found === undefined ? value !== null : found.limit !== (value ?? found.default);
  });
  const words = differing.map(([name, value]) => {
    const before = now.find((one) => one.name === name);
    return `${name}${before === undefined ? "" : ` ${show(before.limit)} →`} ${value === null ? "default" : show(value)}`;
  });
  const extras = now.filter(({ name, limit, default: usual }) => limit !== usual && named[name] === undefined);
  return {
    changes:
      words.length === 0
        ? []
        : [{ sign: "~", what: "limits", detail: words.join(", "), make: set(Object.fromEntries(differing)) }],
    removals: extras.map(({ name, limit }) => ({
      sign: "-",
      what: `limit ${name}`,
      detail: `${show(limit)} → default`,
      make: set({ [name]: null }),
    })),
  };
};

/** A declaration is replaced as a whole, so a field that the file does not name has its default. */
const kindChanges = ({ kind, ...wanted }: KindOfFile, { kinds }: ProjectState): ApplyStep[] => {
  const now = kinds.find((one) => one.kind === kind);
  const defaults = { on_by_default: true, critical: false, quiet_hours: undefined, frequency_cap: undefined };
  const whole = Object.entries({ ...defaults, ...wanted });
  const changed = whole.filter(([name, value]) => !isDeepStrictEqual(value, now?.[name as keyof DeclaredKind]));
  if (now !== undefined && changed.length === 0) return [];
  const detail = changed.map(([name, value]) => `${name} ${show(value)}`).join(", ");
  const make = ({ admin, id }: ApplyTarget) => admin.kinds.put(id(), kind, wanted);
  return [{ sign: now === undefined ? "+" : "~", what: `kind ${kind}`, detail: now ? detail : wanted.title, make }];
};

/** Web Push settings without a key keep the one that they have, so only what is shown can differ. */
const keyless = ["subject", "site", "endpoint", "ca"];

const providerChanges = (
  { providers }: ProjectFile,
  { providers: now }: ProjectState,
): Pick<Diff, "changes" | "removals"> => {
  if (providers === undefined) return { changes: [], removals: [] };
  const changes = Object.entries(providers).flatMap(([name, settings]): ApplyStep[] => {
    const make = ({ admin, id }: ApplyTarget) =>
      admin.providers.set(id(), name as ProviderName, settings as ProviderSettings[ProviderName]);
    const view = now.find(({ provider }) => provider === name);
    const what = `provider ${name}`;
    if (view === undefined) return [{ sign: "+", what, detail: "", make }];
    const keepsKeys = name === "webpush" && settings.private_key === undefined;
    const isEqual = keepsKeys
      ? keyless.every((field) => isSame(settings[field], view.settings[field]))
      : view.fingerprint === settingsFingerprint(settings);
    if (isEqual) return [];
    const shown = Object.fromEntries(
      Object.entries(settings).filter(([field]) => field !== "ca" && field in view.settings),
    );
    const { detail } = changedFields(shown, view.settings);
    return [{ sign: "~", what, detail: detail || "other files or settings", make }];
  });
  const removals = now
    .filter(({ provider }) => !Object.hasOwn(providers, provider))
    .map(
      ({ provider }): ApplyStep => ({
        sign: "-",
        what: `provider ${provider}`,
        detail: "",
        make: ({ admin, id }) => admin.providers.delete(id(), provider as ProviderName),
      }),
    );
  return { changes, removals };
};

const revoke =
  (tokens: readonly ProjectToken[]) =>
  async ({ admin, id }: ApplyTarget): Promise<void> => {
    for (const token of tokens) await admin.tokens.revoke(id(), token.id);
  };

/** The changes for one token, or why there can be none. Tokens never change, so another one replaces it. */
const tokenChanges = (entry: TokenOfFile, { tokens, written }: ProjectState): ApplyStep[] | string => {
  const { secret, ...wanted } = entry;
  const what = `token ${entry.name}`;
  const same = tokens.filter(({ name }) => name === entry.name);
  const fits = ({ scopes, expires_at }: ProjectToken): boolean =>
    (wanted.scopes === undefined || isSame(wanted.scopes, scopes)) &&
    (wanted.expires_at === undefined || new Date(wanted.expires_at).getTime() === Date.parse(expires_at ?? ""));
  if (secret === undefined) {
    if (same.some(fits)) return [];
    const why =
      same.length === 0 ? "it does not exist" : "it has other scopes or another expiry, and a token never changes";
    return `${why}; add \`secret: { write: ${entry.name}.token }\`, and a new one is made`;
  }
  const content = written.get(secret.write);
  if (content === undefined) {
    const make = async (target: ApplyTarget) => {
      const { admin, id } = target;
      await target.write(secret.write, async () => (await admin.tokens.create(id(), wanted)).token);
      await revoke(same)(target);
    };
    const into = `its secret into ${secret.write}`;
    if (same.length === 0) return [{ sign: "+", what, detail: into, make }];
    return [{ sign: "~", what, detail: `a new one, ${into}; the old one is revoked then`, make }];
  }
  const own = same.find(({ fingerprint }) => fingerprint === tokenFingerprint(content));
  const away = `move ${secret.write} away, and a new secret is made`;
  if (own === undefined) return `${secret.write} exists and has no token of this name; ${away}`;
  if (!fits(own)) return `it has other scopes or another expiry, and a token never changes; ${away}`;
  // A run that ended before its last step has left them. Ids are sorted by time.
  const replaced = same.filter(({ id }) => id < own.id);
  if (replaced.length === 0) return [];
  return [
    {
      sign: "-",
      what,
      detail: `what ${secret.write} replaced: ${replaced.map(({ id }) => id).join(", ")}`,
      make: revoke(replaced),
    },
  ];
};

const webhookChanges = (entry: WebhookOfFile, { webhooks, written }: ProjectState): ApplyStep[] | string => {
  const { secret, enabled, ...fields } = entry;
  const what = `webhook ${entry.url}`;
  const [now] = webhooks.filter(({ url }) => url === entry.url);
  const isWritten = secret !== undefined && written.has(secret.write);
  if (now === undefined) {
    if (secret === undefined) return "it does not exist; add `secret: { write: hook.secret }`, and it is created";
    if (isWritten) return `it does not exist, but ${secret.write} does; move that file away, and a new secret is made`;
    const make = async ({ herald, write }: ApplyTarget) => {
      await write(secret.write, async () => (await herald().webhooks.create(fields)).secret);
    };
    const disable = async ({ herald }: ApplyTarget) => {
      for await (const { id, url } of herald().webhooks.list())
        if (url === entry.url) await herald().webhooks.update(id, { enabled });
    };
    return [
      { sign: "+", what, detail: `its secret into ${secret.write}`, make },
      ...(enabled === false ? [{ sign: "~" as const, what, detail: "enabled true → false", make: disable }] : []),
    ];
  }
  const { change, detail } = changedFields({ ...fields, enabled }, now);
  const update = ({ herald }: ApplyTarget) => herald().webhooks.update(now.id, change);
  const rotate = ({ herald, write }: ApplyTarget) =>
    write(secret?.write ?? "", async () => (await herald().webhooks.rotateSecret(now.id)).secret);
  return [
    ...(detail === "" ? [] : [{ sign: "~" as const, what, detail, make: update }]),
    ...(secret === undefined || isWritten
      ? []
      : [
          {
            sign: "~" as const,
            what,
            detail: `a new secret into ${secret.write}; the old one is valid for a day`,
            make: rotate,
          },
        ]),
  ];
};

/** What has to change so that the project is as the file says. Pure: changes are made by their `make`. */
export const diff = (file: ProjectFile, state: ProjectState): Diff => {
  const { kinds, tokens, webhooks } = file;
  const looser = looserApproval(file, state);
  const problems: ShapeProblem[] = looser === undefined ? [] : [{ path: ["project", "approval"], message: looser }];
  const each = <Entry>(
    section: string,
    entries: readonly Entry[] = [],
    changesOf: (entry: Entry, state: ProjectState) => ApplyStep[] | string,
  ) =>
    entries.flatMap((entry, at) => {
      const found = changesOf(entry, state);
      if (typeof found !== "string") return found;
      problems.push({ path: [section, at], message: found });
      return [];
    });
  const [limits, providers] = [limitChanges(file, state), providerChanges(file, state)];
  const changes = [
    ...projectChanges(file, state),
    ...limits.changes,
    ...each("kinds", kinds, kindChanges),
    ...providers.changes,
    ...each("tokens", tokens, tokenChanges),
    ...each("webhooks", webhooks, webhookChanges),
  ];
  const extraKinds = kinds && state.kinds.filter(({ kind }) => kinds.every((entry) => entry.kind !== kind));
  const extraTokens = tokens && state.tokens.filter(({ name }) => tokens.every((entry) => entry.name !== name));
  const extraWebhooks = webhooks && state.webhooks.filter(({ url }) => webhooks.every((entry) => entry.url !== url));
  const removals = [
    ...limits.removals,
    ...(extraKinds ?? []).map(
      ({ kind, title }): ApplyStep => ({
        sign: "-",
        what: `kind ${kind}`,
        detail: title,
        make: ({ admin, id }) => admin.kinds.delete(id(), kind),
      }),
    ),
    ...providers.removals,
    ...(extraTokens ?? []).map(
      (token): ApplyStep => ({ sign: "-", what: `token ${token.name}`, detail: token.id, make: revoke([token]) }),
    ),
    ...(extraWebhooks ?? []).map(
      ({ id, url }): ApplyStep => ({
        sign: "-",
        what: `webhook ${url}`,
        detail: id,
        make: ({ herald }) => herald().webhooks.delete(id),
      }),
    ),
  ];
  return { changes, removals, problems };
};
