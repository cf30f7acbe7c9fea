import type {
  Device,
  DeviceChange,
  DeviceNotification,
  DeviceStatus,
  NewDevice,
  NewFurtherToken,
  NewPreferences,
  Platform,
  Preferences,
  PutDevice,
  PutDeviceResult,
  Target,
} from "./api-types.ts";
import { type CallOptions, type Http, type PostOptions, path } from "./http.ts";
import { type KeysetList, type ListOptions, list, type TimeListOptions } from "./list.ts";

/** A device and its credential, `hdc_…`, for the app to store. No credential if the first answer was lost and this one is a replay. */
export type RegisteredDevice = { readonly device: Device; readonly credential?: string | undefined };

export type DeviceListOptions = TimeListOptions & {
  readonly status?: DeviceStatus | undefined;
  readonly platform?: Platform | undefined;
  readonly userId?: string | undefined;
  readonly app?: string | undefined;
  /** The complete push token. */
  readonly token?: string | undefined;
  /** A target, such as `topic:news`: lists the devices of a send to it. Not with `sort`, `status` or page numbers. */
  readonly match?: Target | undefined;
};

export const createDevices = (http: Http) => {
  const update = (id: string, change: DeviceChange, options?: CallOptions) =>
    http.patch<Device>(path`/devices/${id}`, options, { device: change });
  return {
    /** Registers a device. A known device keeps its id: metadata is merged, topics are added, the credential is replaced. */
    register: (device: NewDevice, options?: PostOptions) =>
      http.create<RegisteredDevice>("device", "/devices", options, { device }),
    /** Creates or updates up to 1,000 devices, without credentials; one result for each, in order. Repeating it changes nothing. */
    put: (devices: readonly PutDevice[], options?: CallOptions) =>
      http.put<PutDeviceResult[]>("/devices", options, { devices }),
    get: (id: string, options?: CallOptions) => http.get<Device>(path`/devices/${id}`, options),
    /** A device must match all filters. */
    list: (options?: DeviceListOptions) => list<Device>(http, "/devices", options),
    /** The notifications for the device, newest first, each with its delivery result. */
    notifications: (id: string, options?: ListOptions): KeysetList<DeviceNotification> =>
      list<DeviceNotification>(http, path`/devices/${id}/notifications`, options),
    /** `metadata` and `identifiers` are merged into the existing values; `null` removes a key. */
    update,
    /** Herald sends nothing to the device until it registers again. */
    deactivate: (id: string, options?: CallOptions) => update(id, { status: "inactive" }, options),
    /** Stores the token that iOS gave the app for a push type, such as `voip`. */
    putToken: (id: string, type: string, token: NewFurtherToken, options?: CallOptions) =>
      http.put<void>(path`/devices/${id}/tokens/${type}`, options, { token }),
    deleteToken: (id: string, type: string, options?: CallOptions) =>
      http.remove(path`/devices/${id}/tokens/${type}`, options),
    /** The same for a control, by its kind. */
    putControlToken: (id: string, kind: string, token: NewFurtherToken, options?: CallOptions) =>
      http.put<void>(path`/devices/${id}/tokens/controls/${kind}`, options, { token }),
    deleteControlToken: (id: string, kind: string, options?: CallOptions) =>
      http.remove(path`/devices/${id}/tokens/controls/${kind}`, options),
    /** Every kind that the project declares, and whether the device gets it. */
    preferences: (id: string, options?: CallOptions) =>
      http.get<Preferences>(path`/devices/${id}/preferences`, options),
    /** Replaces the device's choices. */
    setPreferences: (id: string, preferences: Pick<NewPreferences, "kinds">, options?: CallOptions) =>
      http.put<Preferences>(path`/devices/${id}/preferences`, options, { preferences }),
    delete: (id: string, options?: CallOptions) => http.remove(path`/devices/${id}`, options),
    /** Takes the id or the name of a topic. An unknown name creates the topic. */
    subscribe: (id: string, topic: string, options?: CallOptions) =>
      http.put<void>(path`/devices/${id}/topics/${topic}`, options),
    unsubscribe: (id: string, topic: string, options?: CallOptions) =>
      http.remove(path`/devices/${id}/topics/${topic}`, options),
    /** The device remains, without a user. */
    logOut: (id: string, options?: CallOptions) => http.remove(path`/devices/${id}/user`, options),
  };
};
