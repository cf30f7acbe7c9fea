import { type Answering, answer, type Bus, openBucket } from "@herald/bus";
import {
  AuthenticateDevice,
  allScopes,
  CancelNotification,
  ChangeDeviceQuestion,
  ChangeMetadataByToken,
  ChangeProjectQuestion,
  CountOpens,
  CreateProjectQuestion,
  CreateTokenQuestion,
  CreateTopicQuestion,
  DeleteDevice,
  DeleteProject,
  DeleteProvider,
  DeleteTopic,
  type Device,
  type DeviceId,
  GetDevice,
  GetNotification,
  GetProject,
  GetProvider,
  GetTopic,
  IdentifyDevice,
  ListDeliveries,
  ListDevices,
  ListNotifications,
  ListProjects,
  ListTokens,
  ListTopics,
  mergePatch,
  type Notification,
  newDeviceCredential,
  newDeviceId,
  OpensOfDevices,
  type PageOf,
  type PageRequest,
  type Project,
  type ProjectId,
  ProjectRecord,
  type ProjectToken,
  ProvidersRecord,
  type ProviderView,
  PutProvider,
  projectProvidersKey,
  projectSettingsKey,
  type QuestionContract,
  RegisterDeviceQuestion,
  RevokeToken,
  SubscribeDevices,
  secretHash,
  TokenRecord,
  type Topic,
  tokenKey,
  UnsubscribeDevices,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { z } from "zod";

type Owned<Value> = { readonly projectId: ProjectId; value: Value; readonly credentialHash?: string };

/** A page of rows in the order in which they were made. */
const pageOf = <Row extends { id: string }>(rows: Row[], request: PageRequest): PageOf<Row> => {
  const { perPage } = request;
  if (request.by === "key") {
    const data = rows.filter(({ id }) => id > request.after).slice(0, perPage);
    const last = data.at(-1);
    return { data, next: data.length === perPage && last !== undefined ? last.id : null };
  }
  const begin = (request.page - 1) * perPage;
  const data = rows.slice(begin, begin + perPage);
  const last = Math.max(1, Math.ceil(rows.length / perPage));
  const shown = data.length > 0 ? { from: begin + 1, to: begin + data.length } : { from: 0, to: 0 };
  return { data, pagination: { count: rows.length, page: request.page, pages: last, last, ...shown } };
};

const at = () => new Date().toISOString();

/**
 * The other side of the bus: answers what the gateway asks, under the same contracts and with as little behind them as its
 * tests need. What registry, dispatch and analytics do with a question is tested with them.
 */
export const startPeers = (bus: Bus) => {
  const projects = new Map<string, Project>();
  const tokens = new Map<string, Owned<ProjectToken> & { hash: string }>();
  const devices = new Map<string, Owned<Device>>();
  const topics = new Map<string, Owned<Topic>>();
  const notifications = new Map<string, Owned<Notification>>();
  const providers = new Map<string, Owned<ProviderView>>();
  const opens = new Map<string, string>();
  const asked: { question: string; data: unknown }[] = [];
  /** By question: thrown instead of the answer. */
  const failures = new Map<string, HeraldError>();
  /** Questions that are carried out once, and whose answer is then lost. */
  const late = new Set<string>();
  let missing: string | undefined;
  const tokenBucket = openBucket(bus, "push_tokens", TokenRecord);
  const projectBucket = openBucket(bus, "push_projects", z.union([ProjectRecord, ProvidersRecord]));

  const answering: Answering[] = [];
  const serve = <Request extends z.ZodType, Answer extends z.ZodType>(
    question: QuestionContract<Request, Answer>,
    handle: (data: z.output<Request>) => z.input<Answer> | Promise<z.input<Answer>>,
  ): void => {
    answering.push(
      answer(bus, question, async (data) => {
        asked.push({ question: question.name, data });
        if (question.service === missing) throw new HeraldError("service-away", `${missing} does not answer`);
        const failure = failures.get(question.name);
        if (failure !== undefined) throw failure;
        const result = await handle(data);
        if (late.delete(question.name)) throw new HeraldError("service-away", "the answer is lost");
        return result;
      }),
    );
  };

  const owned = <Value>(
    map: Map<string, Owned<Value>>,
    { projectId }: { projectId: ProjectId },
    id: string,
    code: "device-not-found" | "topic-not-found" | "notification-not-found" | "token-not-found" | "provider-not-found",
  ): Owned<Value> => {
    const found = map.get(id);
    if (found?.projectId !== projectId) throw new HeraldError(code, "id: the project has none such");
    return found;
  };
  const rows = <Value>(map: Map<string, Owned<Value>>, projectId: ProjectId): Value[] =>
    [...map.values()].filter((one) => one.projectId === projectId).map(({ value }) => value);
  const projectOf = (id: ProjectId): Project => {
    const found = projects.get(id);
    if (found === undefined) throw new HeraldError("project-not-found", "id: there is no such project");
    return found;
  };
  const saveSettings = async (project: Project): Promise<void> => {
    projects.set(project.id, project);
    const record = { id: project.id, openRegistration: project.open_registration };
    await projectBucket.put(projectSettingsKey(project.id), record);
  };
  const saveToken = async (projectId: ProjectId, hash: string, value: ProjectToken): Promise<void> => {
    tokens.set(value.id, { projectId, value, hash });
    const { id, scopes, expires_at: expiresAt } = value;
    await tokenBucket.put(tokenKey(hash), { id, projectId, scopes, ...(expiresAt === undefined ? {} : { expiresAt }) });
  };

  serve(CreateProjectQuestion, async ({ projectId, name, openRegistration, tokenId, tokenHash }) => {
    const known = projects.get(projectId);
    if (known !== undefined) return { project: known, created: false };
    const project = { id: projectId, name, open_registration: openRegistration, created_at: at() };
    await saveSettings(project);
    await saveToken(projectId, tokenHash, { id: tokenId, name: "first", scopes: [...allScopes], created_at: at() });
    return { project, created: true };
  });
  serve(ListProjects, ({ page }) => pageOf([...projects.values()], page));
  serve(GetProject, ({ projectId }) => projectOf(projectId));
  serve(ChangeProjectQuestion, async ({ projectId, name, openRegistration }) => {
    const project = { ...projectOf(projectId) };
    if (name !== undefined) project.name = name;
    if (openRegistration !== undefined) project.open_registration = openRegistration;
    await saveSettings(project);
    return project;
  });
  serve(DeleteProject, async ({ projectId }) => {
    projectOf(projectId);
    projects.delete(projectId);
    await projectBucket.delete(projectSettingsKey(projectId));
    for (const { projectId: owner, hash } of tokens.values()) if (owner === projectId) await tokenBucket.delete(hash);
    return {};
  });
  serve(CreateTokenQuestion, async ({ projectId, tokenId, tokenHash, name, scopes, expiresAt }) => {
    projectOf(projectId);
    const expires = expiresAt === undefined ? {} : { expires_at: expiresAt };
    const token = { id: tokenId, name, scopes, ...expires, created_at: at() };
    await saveToken(projectId, tokenHash, token);
    return token;
  });
  serve(ListTokens, ({ projectId, page }) => pageOf(rows(tokens, projectOf(projectId).id), page));
  serve(RevokeToken, async ({ projectId, tokenId }) => {
    projectOf(projectId);
    owned(tokens, { projectId }, tokenId, "token-not-found");
    await tokenBucket.delete(tokens.get(tokenId)?.hash ?? "");
    tokens.delete(tokenId);
    return {};
  });

  type Registering = z.output<typeof RegisterDeviceQuestion.request> | z.output<typeof IdentifyDevice.request>;
  const register = (data: Registering) => {
    const { projectId, platform, token, metadata = {}, identifiers = {} } = data;
    const known = [...devices.values()].find(
      (one) => one.projectId === projectId && one.value.platform === platform && one.value.token === token,
    );
    const id = known?.value.id ?? newDeviceId(new Date());
    const credential = newDeviceCredential(projectId, id);
    const subscribed = "topics" in data ? data.topics : [];
    const device: Device = {
      id,
      token,
      platform,
      metadata: mergePatch(known?.value.metadata ?? {}, metadata),
      identifiers: mergePatch(known?.value.identifiers ?? {}, identifiers),
      status: "active",
      topics: [...new Set([...(known?.value.topics ?? []), ...subscribed])],
      created_at: known?.value.created_at ?? at(),
      updated_at: at(),
    };
    devices.set(id, { projectId, value: device, credentialHash: secretHash(credential) });
    return { device, credential, created: known === undefined };
  };
  serve(RegisterDeviceQuestion, register);
  serve(IdentifyDevice, (data) => {
    const known = [...devices.values()].find(
      (one) => one.projectId === data.projectId && one.value.token === data.token,
    );
    if (known !== undefined) return { device: known.value, created: false };
    return register(data);
  });
  serve(ListDevices, ({ projectId, status, page }) =>
    pageOf(
      rows(devices, projectId).filter((device) => status === undefined || device.status === status),
      page,
    ),
  );
  serve(GetDevice, (data) => owned(devices, data, data.deviceId, "device-not-found").value);
  serve(ChangeDeviceQuestion, (data) => {
    const found = owned(devices, data, data.deviceId, "device-not-found");
    const { metadata = {}, identifiers = {}, ...rest } = data.change;
    found.value = {
      ...found.value,
      ...(rest.token === undefined ? {} : { token: rest.token }),
      ...(rest.status === undefined ? {} : { status: rest.status }),
      metadata: mergePatch(found.value.metadata, metadata),
      identifiers: mergePatch(found.value.identifiers, identifiers),
    };
    return found.value;
  });
  serve(ChangeMetadataByToken, ({ projectId, token, platform, metadata }) => {
    const found = [...devices.values()].filter(
      ({ projectId: owner, value }) =>
        owner === projectId && value.token === token && (platform === undefined || value.platform === platform),
    );
    const [only] = found;
    if (only === undefined) throw new HeraldError("device-not-found", "identifier: no device has it");
    if (found.length > 1) throw new HeraldError("ambiguous-device", "platform: is required here");
    only.value = { ...only.value, metadata: mergePatch(only.value.metadata, metadata) };
    return only.value;
  });
  serve(DeleteDevice, (data) => {
    devices.delete(owned(devices, data, data.deviceId, "device-not-found").value.id);
    return {};
  });
  serve(AuthenticateDevice, ({ projectId, deviceId, credentialHash }) => {
    const device = devices.get(deviceId);
    return { valid: device?.projectId === projectId && device.credentialHash === credentialHash };
  });

  const topicOf = (projectId: ProjectId, reference: string): Owned<Topic> => {
    const named = [...topics.values()].find((one) => one.projectId === projectId && one.value.name === reference);
    return named ?? owned(topics, { projectId }, reference, "topic-not-found");
  };
  const makeTopic = (projectId: ProjectId, id: string, name: string): Owned<Topic> => {
    const topic = { projectId, value: { id: id as Topic["id"], name, devices: 0, created_at: at() } };
    topics.set(id, topic);
    return topic;
  };
  serve(ListTopics, ({ projectId, page }) => pageOf(rows(topics, projectId), page));
  serve(GetTopic, ({ projectId, topic }) => topicOf(projectId, topic).value);
  serve(CreateTopicQuestion, ({ projectId, topicId, name }) => {
    const known = rows(topics, projectId).find((topic) => topic.name === name);
    if (known !== undefined) return { topic: known, created: false };
    return { topic: makeTopic(projectId, topicId, name).value, created: true };
  });
  serve(DeleteTopic, ({ projectId, topic }) => {
    topics.delete(topicOf(projectId, topic).value.id);
    return {};
  });
  const subscribing = (subscribe: boolean) => (data: z.output<typeof SubscribeDevices.request>) => {
    const { projectId, topic: reference, create } = data;
    const exists = rows(topics, projectId).some(({ id, name }) => id === reference || name === reference);
    if (!exists && create && !reference.startsWith("top_"))
      makeTopic(projectId, newDeviceId(new Date()).replace("dev_", "top_"), reference);
    const { value: topic } = topicOf(projectId, reference);
    const known = data.devices.filter((id) => devices.get(id)?.projectId === projectId);
    for (const id of known) {
      const device = devices.get(id);
      if (device === undefined) continue;
      const names = new Set(device.value.topics);
      if (subscribe) names.add(topic.name);
      else names.delete(topic.name);
      device.value = { ...device.value, topics: [...names] };
    }
    const unknown = data.devices.filter((id) => !known.includes(id));
    return { topic: { id: topic.id, name: topic.name }, changed: known.length, unknown };
  };
  serve(SubscribeDevices, subscribing(true));
  serve(UnsubscribeDevices, subscribing(false));

  serve(ListNotifications, ({ projectId, page }) => pageOf(rows(notifications, projectId), page));
  serve(GetNotification, (data) => owned(notifications, data, data.notificationId, "notification-not-found").value);
  serve(CancelNotification, (data) => {
    const found = owned(notifications, data, data.notificationId, "notification-not-found");
    if (found.value.status === "completed") throw new HeraldError("notification-final", "id: it is completed");
    found.value = { ...found.value, status: "cancelled" };
    return found.value;
  });
  serve(ListDeliveries, (data) => {
    owned(notifications, data, data.notificationId, "notification-not-found");
    const sent = rows(devices, data.projectId).map((device) => ({ ...device, device_id: device.id }));
    const { data: shown, ...rest } = pageOf(sent, data.page);
    const all = shown.map(({ device_id, platform }) => ({
      device_id,
      platform,
      status: "accepted" as const,
      attempts: 1,
      possible_repeat: false,
      at: at(),
    }));
    const wanted = all.filter(({ status }) => data.status === undefined || status === data.status);
    return { ...rest, data: wanted } as PageOf<(typeof wanted)[number]>;
  });
  const providerKey = (data: { projectId: ProjectId; provider: string }) => `${data.projectId}/${data.provider}`;
  const saveProviders = async (projectId: ProjectId): Promise<void> => {
    const all = rows(providers, projectId).map(({ provider }) => provider);
    await projectBucket.put(projectProvidersKey(projectId), { providers: all });
  };
  serve(PutProvider, async (data) => {
    const { projectId, provider } = data;
    const view = { provider, settings: { provider }, status: "active" as const, updated_at: at() };
    providers.set(providerKey(data), { projectId, value: view });
    await saveProviders(projectId);
    return view;
  });
  serve(GetProvider, (data) => owned(providers, data, providerKey(data), "provider-not-found").value);
  serve(DeleteProvider, async (data) => {
    owned(providers, data, providerKey(data), "provider-not-found");
    providers.delete(providerKey(data));
    await saveProviders(data.projectId);
    return {};
  });

  serve(CountOpens, ({ notificationIds }) => ({
    counts: Object.fromEntries(
      notificationIds.map((id) => [id, [...opens.keys()].filter((key) => key.startsWith(`${id}/`)).length]),
    ),
  }));
  serve(OpensOfDevices, ({ notificationId, deviceIds }) => ({
    openedAt: Object.fromEntries(
      deviceIds.flatMap((id: DeviceId) => {
        const openedAt = opens.get(`${notificationId}/${id}`);
        return openedAt === undefined ? [] : [[id, openedAt]];
      }),
    ),
  }));

  return {
    asked,
    failures,
    late,
    /** The service answers nothing, as the bus says it for one that is not there. */
    away: (service: "registry" | "dispatch" | "analytics") => {
      missing = service;
    },
    back: () => {
      missing = undefined;
    },
    notifications,
    opens,
    tokenBucket,
    projectBucket,
    stop: async () => {
      await Promise.all(answering.map((one) => one.stop()));
    },
  };
};

export type Peers = ReturnType<typeof startPeers>;
