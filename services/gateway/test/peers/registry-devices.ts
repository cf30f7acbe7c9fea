import {
  audienceRequests,
  type Device,
  deviceRequests,
  isActivityPushKey,
  newDeviceCredential,
  newDeviceId,
  PutDevice,
  preferenceRequests,
  pushTokenHash,
  secretHash,
  userRequests,
} from "@herald/contracts";
import { HeraldError, notFound } from "@herald/kit";
import { mergePatch } from "@herald/rules";
import type { z } from "zod";
import { at, exportPage, type Owned, owned, pageOf, rows, type Serve } from "./rows.ts";

export type Devices = Map<string, Owned<Device>>;

/** Registry's devices. */
export const serveDevices = (serve: Serve, devices: Devices): void => {
  const noted = new Set<string>();
  type Registering =
    | z.output<typeof deviceRequests.register.request>
    | z.output<typeof deviceRequests.identify.request>;
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
      ...(platform === "web" && { vapid_key_id: data.vapidKeyId ?? data.currentVapidKeyId }),
      user_id: ("userId" in data ? data.userId : undefined) ?? known?.value.user_id ?? null,
      created_at: known?.value.created_at ?? at(),
      updated_at: at(),
    };
    devices.set(id, { projectId, value: device, credentialHash: secretHash(credential) });
    return { device, credential, created: known === undefined };
  };
  serve(deviceRequests.register, register);
  serve(deviceRequests.identify, (data) => {
    const known = [...devices.values()].find(
      (one) => one.projectId === data.projectId && one.value.token === data.token,
    );
    if (known !== undefined) return { device: known.value, created: false };
    return register(data);
  });
  serve(deviceRequests.put, ({ projectId, devices: entries }) => ({
    results: entries.map((sent) => {
      const parsed = PutDevice.safeParse(sent);
      if (!parsed.success) {
        const [issue] = parsed.error.issues;
        const keys = issue?.code === "unrecognized_keys" ? issue.keys : [];
        const field = [...(issue?.path ?? []), ...keys].join(".");
        return {
          result: "refused" as const,
          problems: [{ field, detail: String(issue?.message), code: "invalid-value" }],
        };
      }
      const { token, platform, metadata } = parsed.data;
      const held = devices.size;
      const { device } = register({ projectId, token, platform, metadata, topics: [] });
      return { result: devices.size > held ? ("created" as const) : ("unchanged" as const), id: device.id };
    }),
  }));
  serve(deviceRequests.list, ({ projectId, page, match, status, platform, user_id, token }) => {
    const wanted = Object.entries({ status, platform, user_id, token }).filter(([, value]) => value !== undefined);
    const fits = (device: Device) =>
      wanted.every(([field, value]) => device[field as keyof Device] === value) &&
      (match === undefined || named(match, device));
    return pageOf(rows(devices, projectId).filter(fits), page);
  });
  serve(deviceRequests.get, (data) => owned(devices, data, data.deviceId, "device-not-found").value);
  serve(deviceRequests.change, (data) => {
    const found = owned(devices, data, data.deviceId, "device-not-found");
    const { metadata = {}, identifiers = {}, ...rest } = data.change;
    if (data.ofUser !== undefined && found.value.user_id !== data.ofUser) throw notFound("device-not-found", "id");
    found.value = {
      ...found.value,
      ...(rest.token === undefined ? {} : { token: rest.token }),
      ...(rest.status === undefined ? {} : { status: rest.status }),
      ...(rest.user_id === undefined ? {} : { user_id: rest.user_id }),
      metadata: mergePatch(found.value.metadata, metadata),
      identifiers: mergePatch(found.value.identifiers, identifiers),
    };
    return found.value;
  });
  serve(deviceRequests.changeByToken, ({ projectId, token, platform, metadata }) => {
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
  const preferences = {
    kinds: [{ kind: "news", title: "News", on: true, critical: false, set_by: "default" as const }],
  };
  for (const question of [preferenceRequests.get, preferenceRequests.put])
    serve(question, ({ projectId, of }) => {
      if ("device" in of) owned(devices, { projectId }, of.device, "device-not-found");
      return preferences;
    });
  serve(userRequests.authenticate, ({ userToken }) => {
    const { sub } = JSON.parse(Buffer.from(userToken.split(".")[1] ?? "", "base64url").toString());
    if (sub === "invalid") throw new HeraldError("user-token-invalid", "user_token: is not signed");
    return { userId: sub };
  });
  serve(deviceRequests.putToken, (data) => {
    owned(devices, data, data.deviceId, "device-not-found");
    const { push, token } = data;
    const isNoted = noted.has(`${data.deviceId} ${push} ${pushTokenHash(token)}`);
    return isActivityPushKey(push) && !isNoted ? { cameAt: new Date().toISOString() } : {};
  });
  serve(deviceRequests.noteState, ({ deviceId, push, tokenHash }) => {
    noted.add(`${deviceId} ${push} ${tokenHash}`);
    return {};
  });
  serve(deviceRequests.deleteToken, (data) => {
    owned(devices, data, data.deviceId, "device-not-found");
    return {};
  });
  serve(deviceRequests.delete, (data) => {
    devices.delete(owned(devices, data, data.deviceId, "device-not-found").value.id);
    return {};
  });
  const named = (target: string, device: Device) => target === "all" || device.topics.includes(target);
  serve(audienceRequests.count, ({ projectId, targets }) => {
    const active = rows(devices, projectId).filter(({ status }) => status === "active");
    const reached = active.filter((device) => targets.some((target) => named(target, device)));
    const of = (wanted: string) => reached.filter(({ platform }) => platform === wanted).length;
    return {
      devices: { ios: of("ios"), android: of("android"), web: of("web") },
      unmatched: targets.filter((target) => !active.some((device) => named(target, device))),
    };
  });
  serve(audienceRequests.countVapidKeys, ({ projectId }) => {
    const web = rows(devices, projectId).filter(({ platform, status }) => platform === "web" && status === "active");
    const counts = Map.groupBy(web, (device) => device.vapid_key_id);
    return { subscriptions: [...counts].map(([keyId, all]) => ({ ...(keyId && { keyId }), devices: all.length })) };
  });
  serve(deviceRequests.export, (data) => exportPage(rows(devices, data.projectId), data));
  serve(audienceRequests.explain, (data) => {
    const device = owned(devices, data, data.deviceId, "device-not-found").value;
    const matched = data.targets.find((target) => named(target, device));
    return { device, ...(matched === undefined ? {} : { matched }) };
  });
  serve(userRequests.get, ({ projectId, userId }) => {
    const own = rows(devices, projectId).filter(({ user_id }) => user_id === userId);
    if (own.length === 0) throw new HeraldError("user-not-found", "user: the project has no device of this user");
    return { user_id: userId, devices: own, device_count: own.length, last_seen_at: at() };
  });
  serve(userRequests.list, ({ projectId, page: { after, perPage } }) => {
    const users = Map.groupBy(rows(devices, projectId), ({ user_id }) => user_id ?? "");
    const all = [...users].filter(([id]) => id > after).toSorted(([one], [other]) => (one < other ? -1 : 1));
    const data = all
      .slice(0, perPage)
      .map(([userId, own]) => ({ user_id: userId, device_count: own.length, last_seen_at: at() }));
    return { data, next: all.length > perPage ? (data.at(-1)?.user_id ?? null) : null };
  });
  serve(userRequests.erase, ({ projectId, userId }) => {
    for (const { id, user_id } of rows(devices, projectId)) if (user_id === userId) devices.delete(id);
    return { erasedAt: at() };
  });
  serve(deviceRequests.authenticate, ({ projectId, deviceId, credentialHash }) => {
    const device = devices.get(deviceId);
    return { valid: device?.projectId === projectId && device.credentialHash === credentialHash };
  });
};
