import type {
  ApnsSettings,
  DeadLetter,
  FcmSettings,
  IdentityKey,
  Installation,
  LimitsChange,
  NewIdentityKey,
  NewPause,
  NewProject,
  NewProjectToken,
  Notification,
  Project,
  ProjectChange,
  ProjectLimit,
  ProjectToken,
  ProviderView,
  Replay,
  RetiredVapidKey,
  SystemStatus,
  TestedPush,
  TestPush,
  VapidKey,
  VapidKeyPair,
  WebPushSettings,
} from "./api-types.ts";
import { type CallOptions, createHttp, type HeraldOptions, type Http, type PostOptions, path } from "./http.ts";
import { createKinds } from "./kinds.ts";
import { type ListOptions, list } from "./list.ts";
import { createAudit, createOperators, createSessions } from "./operators.ts";

/** The settings of each provider. */
export type ProviderSettings = {
  readonly apns: ApnsSettings;
  readonly fcm: FcmSettings;
  readonly webpush: WebPushSettings;
};

const createProjects = (http: Http) => ({
  /** Creates a project and its first token, `hpt_…`, shown only once. No token if the first answer was lost and this one is a replay. */
  create: (project: NewProject, options?: PostOptions) =>
    http.create<{ readonly project: Project; readonly token?: string | undefined }>("project", "/projects", options, {
      project,
    }),
  get: (id: string, options?: CallOptions) => http.get<Project>(path`/projects/${id}`, options),
  /** `key`: only the project with this key. */
  list: (options?: ListOptions & { readonly key?: string | undefined }) => list<Project>(http, "/projects", options),
  update: (id: string, change: ProjectChange, options?: CallOptions) =>
    http.patch<Project>(path`/projects/${id}`, options, { project: change }),
  /** Gives a key to a project without one. It never changes. */
  setKey: (id: string, key: string, options?: CallOptions) =>
    http.put<Project>(path`/projects/${id}/key`, options, { key }),
  /** The project's limits and quotas, and their use. */
  limits: (id: string, options?: CallOptions) => http.get<ProjectLimit[]>(path`/projects/${id}/limits`, options),
  /** Sets limits of the project; null restores a default. Returns all that are set. */
  changeLimits: (id: string, limits: LimitsChange, options?: CallOptions) =>
    http.patch<LimitsChange>(path`/projects/${id}/limits`, options, { limits }),
  /** Sends nothing of the project until it is resumed, at the latest at `until`. A second pause replaces the first. */
  pause: (id: string, pause: NewPause = {}, options?: PostOptions) =>
    http.post<Project>(path`/projects/${id}/pause`, options, pause),
  /** A pause of the installation stays. */
  resume: (id: string, options?: PostOptions) => http.post<Project>(path`/projects/${id}/resume`, options),
  /** Deletes the project with all its data. */
  delete: (id: string, options?: CallOptions) => http.remove(path`/projects/${id}`, options),
});

const createNotifications = (http: Http) => {
  const decide =
    (decision: "approve" | "reject") =>
    (projectId: string, id: string, why: Pick<NewPause, "reason"> = {}, options?: PostOptions) =>
      http.post<Omit<Notification, "opens">>(
        `${path`/projects/${projectId}/notifications/${id}`}/${decision}`,
        options,
        why,
      );
  return {
    /**
     * Sends a proposed notification, now or at its time. Neither its sender nor the creator of its sender's token can. Throws
     * `audience-grew` if it reaches many more devices by now: a second call approves the new number.
     */
    approve: decide("approve"),
    /** Cancels a proposed notification. */
    reject: decide("reject"),
  };
};

const createInstallation = (http: Http) => ({
  /** What holds for all projects. */
  get: (options?: CallOptions) => http.get<Installation>("/installation", options),
  /** Sends nothing of any project until it is resumed, at the latest at `until`. A second pause replaces the first. */
  pause: (pause: NewPause = {}, options?: PostOptions) => http.post<Installation>("/pause", options, pause),
  /** Pauses of single projects stay. */
  resume: (options?: PostOptions) => http.post<Installation>("/resume", options),
});

const createTokens = (http: Http) => ({
  /** The token is shown only once. It is absent if the first answer was lost and this one is a replay. */
  create: (projectId: string, token: NewProjectToken, options?: PostOptions) =>
    http.create<{ readonly projectToken: ProjectToken; readonly token?: string | undefined }>(
      "projectToken",
      path`/projects/${projectId}/tokens`,
      options,
      { token },
    ),
  list: (projectId: string, options?: ListOptions) =>
    list<ProjectToken>(http, path`/projects/${projectId}/tokens`, options),
  /** All replicas refuse the token within a second. */
  revoke: (projectId: string, tokenId: string, options?: CallOptions) =>
    http.remove(path`/projects/${projectId}/tokens/${tokenId}`, options),
});

const createIdentityKeys = (http: Http) => ({
  /** Without a public key Herald creates a secret, `his_…`, shown only once. No secret if the answer is a replay of a lost one. */
  create: (projectId: string, key: NewIdentityKey = {}, options?: PostOptions) =>
    http.create<{ readonly identityKey: IdentityKey; readonly secret?: string | undefined }>(
      "identityKey",
      path`/projects/${projectId}/identity-keys`,
      options,
      key,
    ),
  list: (projectId: string, options?: ListOptions) =>
    list<IdentityKey>(http, path`/projects/${projectId}/identity-keys`, options),
  delete: (projectId: string, keyId: string, options?: CallOptions) =>
    http.remove(path`/projects/${projectId}/identity-keys/${keyId}`, options),
});

const createProviders = (http: Http) => {
  const target = (projectId: string, provider: string) => path`/projects/${projectId}/providers/${provider}`;
  return {
    /** Herald checks the settings at once. It never shows secrets again. */
    set: <Provider extends keyof ProviderSettings>(
      projectId: string,
      provider: Provider,
      settings: ProviderSettings[Provider],
      options?: CallOptions,
    ) => http.put<ProviderView>(target(projectId, provider), options, settings),
    get: (projectId: string, provider: keyof ProviderSettings, options?: CallOptions) =>
      http.get<ProviderView>(target(projectId, provider), options),
    delete: (projectId: string, provider: keyof ProviderSettings, options?: CallOptions) =>
      http.remove(target(projectId, provider), options),
    /** Sends one push to the token and returns the provider's answer. Works while the provider is paused. */
    test: (projectId: string, provider: keyof ProviderSettings, push: TestPush, options?: PostOptions) =>
      http.post<TestedPush>(`${target(projectId, provider)}/test`, options, push),
  };
};

const createVapidKeys = (http: Http) => {
  const keys = (projectId: string) => path`/projects/${projectId}/providers/webpush/keys`;
  const key = (projectId: string, keyId: string) => `${keys(projectId)}/${encodeURIComponent(keyId)}`;
  return {
    /** The next key first, then the current key, then earlier keys. */
    list: (projectId: string, options?: CallOptions) => http.get<VapidKey[]>(keys(projectId), options),
    /** Adds the next key: the first step of a rotation. Without a pair Herald generates one. */
    stage: (projectId: string, pair?: VapidKeyPair, options?: PostOptions) =>
      http.post<VapidKey>(keys(projectId), options, { key: pair }),
    /** Browsers subscribe with this key from now on. */
    makeCurrent: (projectId: string, keyId: string, options?: CallOptions) =>
      http.patch<VapidKey>(key(projectId, keyId), options, { key: { status: "current" } }),
    /** `force` accepts that subscriptions made with this key are lost until they subscribe again. */
    retire: (projectId: string, keyId: string, options?: CallOptions & { readonly force?: boolean | undefined }) =>
      http.delete<RetiredVapidKey>(key(projectId, keyId), {
        signal: options?.signal,
        query: { force: options?.force },
      }),
  };
};

const createDeadLetters = (http: Http) => {
  const replayMany = (body: unknown, options?: PostOptions) =>
    http.post<{ replays: Replay[]; next: string | null }>("/dead-letters/replay", options, body);
  return {
    get: (id: string, options?: CallOptions) => http.get<DeadLetter>(path`/dead-letters/${id}`, options),
    /** `projectId`: only dead letters of this project; this list has no page numbers. */
    list: (
      options?: ListOptions & { readonly durable?: string | undefined; readonly projectId?: string | undefined },
    ) => list<DeadLetter>(http, "/dead-letters", options),
    replay: (id: string, options?: PostOptions) => http.post<Replay>(path`/dead-letters/${id}/replay`, options),
    /** Replays up to 100 dead letters. Returns a result for each. */
    replayMany: (ids: readonly string[], options?: PostOptions) => replayMany({ dead_letters: ids }, options),
    /** Replays the next 100 dead letters of a durable that were never replayed. To continue pass `next` as `after`; null at the end. */
    replayDurable: (durable: string, after?: string, options?: PostOptions) => replayMany({ durable, after }, options),
  };
};

/** The client for operators: operators, projects, their tokens, keys and providers, proposed notifications, dead letters. Takes an operator's token. */
export class HeraldAdmin {
  readonly operators: ReturnType<typeof createOperators>;
  readonly sessions: ReturnType<typeof createSessions>;
  readonly audit: ReturnType<typeof createAudit>;
  readonly projects: ReturnType<typeof createProjects>;
  readonly notifications: ReturnType<typeof createNotifications>;
  readonly installation: ReturnType<typeof createInstallation>;
  readonly kinds: ReturnType<typeof createKinds>;
  readonly tokens: ReturnType<typeof createTokens>;
  readonly identityKeys: ReturnType<typeof createIdentityKeys>;
  readonly providers: ReturnType<typeof createProviders>;
  readonly vapidKeys: ReturnType<typeof createVapidKeys>;
  readonly deadLetters: ReturnType<typeof createDeadLetters>;
  /** Services, streams, durables, providers that need a person, and dead letters. */
  readonly status: (options?: CallOptions) => Promise<SystemStatus>;

  /** Throws a TypeError if the address or the token is malformed. */
  constructor(options: HeraldOptions) {
    const http = createHttp(options, "/admin/v1");
    this.operators = createOperators(http);
    this.sessions = createSessions(http);
    this.audit = createAudit(http);
    this.projects = createProjects(http);
    this.notifications = createNotifications(http);
    this.installation = createInstallation(http);
    this.kinds = createKinds(http);
    this.tokens = createTokens(http);
    this.identityKeys = createIdentityKeys(http);
    this.providers = createProviders(http);
    this.vapidKeys = createVapidKeys(http);
    this.deadLetters = createDeadLetters(http);
    this.status = (options) => http.get<SystemStatus>("/status", options);
  }
}
