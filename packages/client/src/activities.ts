import type {
  Activity,
  ActivityEnd,
  ActivityState,
  ActivityVersion,
  DeviceActivity,
  NewActivity,
} from "./api-types.ts";
import { type CallOptions, type Http, type PostOptions, path } from "./http.ts";

export const createActivities = (http: Http) => ({
  /** Starts a Live Activity on the iPhones of the targets. The same activity again is the same request; an id is used once. */
  start: (id: string, activity: NewActivity, options?: PostOptions) =>
    http.put<ActivityVersion>(path`/activities/${id}`, options, { activity }),
  /** Sends a new state, which replaces the last one whole. With `sequence`, a state that comes too late writes nothing. */
  update: (id: string, activity: ActivityState, options?: PostOptions) =>
    http.patch<ActivityVersion>(path`/activities/${id}`, options, { activity }),
  /** Ends it with its last state. */
  end: (id: string, activity: ActivityEnd = {}, options?: PostOptions) =>
    http.post<ActivityVersion>(path`/activities/${id}/end`, options, { activity }),
  /** For 14 hours after its start. */
  get: (id: string, options?: CallOptions) => http.get<Activity>(path`/activities/${id}`, options),
  /** Its state as a device reads it: a 404 unless the device matches the targets. */
  getForDevice: (id: string, deviceId: string, options?: CallOptions) =>
    http.get<DeviceActivity>(path`/devices/${deviceId}/activities/${id}`, options),
});
