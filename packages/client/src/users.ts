import type { Device, NewPreferences, Notification, Preferences, User, UserErasure, UserSummary } from "./api-types.ts";
import { type CallOptions, type Http, path } from "./http.ts";
import { type KeysetList, type ListOptions, list } from "./list.ts";
import type { NotificationListOptions } from "./notifications.ts";
import { createUserToken } from "./signatures.ts";

export const createUsers = (http: Http) => ({
  /** Signs a user token for your app, without a request. Take the id from your own session, never from the app. */
  token: createUserToken,
  /** The users who have devices, sorted by id. `prefix`: only users whose id begins with it. */
  list: (options?: ListOptions & { readonly prefix?: string | undefined }): KeysetList<UserSummary> =>
    list<UserSummary>(http, "/users", options),
  /** A user with at most 100 of their devices. A user without devices is not found. */
  get: (userId: string, options?: CallOptions) => http.get<User>(path`/users/${userId}`, options),
  /** The notifications that were sent to `user:<id>`. */
  notifications: (userId: string, options?: NotificationListOptions) =>
    list<Notification>(http, path`/users/${userId}/notifications`, options),
  /** Assigns the device to this user, and removes it from any other user. */
  assignDevice: (userId: string, deviceId: string, options?: CallOptions) =>
    http.put<Device>(path`/users/${userId}/devices/${deviceId}`, options),
  /** The device remains, without a user. */
  releaseDevice: (userId: string, deviceId: string, options?: CallOptions) =>
    http.remove(path`/users/${userId}/devices/${deviceId}`, options),
  /** Every kind that the project declares, whether the user gets it, and the user's quiet hours. */
  preferences: (userId: string, options?: CallOptions) =>
    http.get<Preferences>(path`/users/${userId}/preferences`, options),
  /** Replaces the user's choices, for all of the user's devices. */
  setPreferences: (userId: string, preferences: NewPreferences, options?: CallOptions) =>
    http.put<Preferences>(path`/users/${userId}/preferences`, options, { preferences }),
  /** Deletes the user's devices, and erases the user everywhere. Returns the time by which this is done. */
  erase: (userId: string, options?: CallOptions) => http.delete<UserErasure>(path`/users/${userId}`, options),
});
