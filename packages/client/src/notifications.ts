import type {
  Delivery,
  DeliveryStatus,
  DeliveryTrace,
  DryRun,
  LineError,
  NewNotification,
  NewPause,
  Notification,
  NotificationChange,
  NotificationStatus,
  PushType,
  Recipients,
  SentNotification,
} from "./api-types.ts";
import { type CompletedOptions, createCompletions } from "./completions.ts";
import { HeraldError } from "./error.ts";
import { type CallOptions, type FileBody, type Http, type PostOptions, path } from "./http.ts";
import { type ListOptions, list, type TimeListOptions } from "./list.ts";
import { resumeUpload, type UploadOptions } from "./uploads.ts";

/** A notification that Herald has accepted. */
export type Sent = Notification & {
  /** Resolves when every device is final: completed, cancelled or expired. Waits for the approval of a proposed one, for up to 72 hours. Needs the scope `read`. */
  completed(options?: CompletedOptions): Promise<Notification>;
};

export type NotificationListOptions = TimeListOptions & {
  readonly status?: NotificationStatus | undefined;
  readonly kind?: string | undefined;
  /** `<name>:<value>`, such as `campaign:spring`. */
  readonly label?: string | undefined;
  /** Apple's push type, such as `liveactivity`. */
  readonly push_type?: PushType | undefined;
};

export const createNotifications = (http: Http) => {
  const get = (id: string, options?: CallOptions) => http.get<Notification>(path`/notifications/${id}`, options);
  const recipients = (id: string, options?: CallOptions) =>
    http.get<Recipients>(path`/notifications/${id}/recipients`, options);
  const completed = createCompletions(http);

  return {
    /** Sends to every device that the targets match. When it resolves, Herald has stored the notification. */
    send: async (notification: NewNotification, options?: PostOptions): Promise<Sent> => {
      const sent = await http.post<Notification>("/notifications", options, { notification });
      return { ...sent, completed: (how) => completed(sent.id, how) };
    },

    /** Sends up to 500 notifications, each with its own content. Returns an `id` or `errors` for each, in order. */
    sendBatch: (notifications: readonly NewNotification[], options?: PostOptions) =>
      http.post<SentNotification[]>("/notifications/batch", options, { notifications }),

    /** Counts the devices of a send and renders their payloads. Sends and stores nothing. */
    dryRun: (notification: NewNotification, options?: CallOptions) =>
      http.post<DryRun>("/notifications", options, { notification: { ...notification, dry_run: true } }),

    get,

    /** Waits for a notification that was sent earlier, as `sent.completed()` does. */
    completed,

    list: (options?: NotificationListOptions) => list<Notification>(http, "/notifications", options),

    /** Changes when a notification is sent, before it begins, or lowers the speed of its rollout. Null removes a field. */
    update: (id: string, change: NotificationChange, options?: CallOptions) =>
      http.patch<Omit<Notification, "opens">>(path`/notifications/${id}`, options, { notification: change }),

    /** Cancels the pushes that are not sent yet. Cancelling twice is no error. */
    cancel: async (id: string, options?: CallOptions): Promise<Notification> => {
      try {
        await http.delete(path`/notifications/${id}`, options);
      } catch (error) {
        // The first attempt may have cancelled it although its answer was lost.
        if (!(error instanceof HeraldError) || error.slug !== "notification-final") throw error;
        const found = await get(id, options);
        if (found.status !== "cancelled") throw error;
        return found;
      }
      return get(id, options);
    },

    /** Sends nothing more of it until it is resumed; its time to live runs on. Pausing twice is no error. */
    pause: (id: string, pause: Pick<NewPause, "reason"> = {}, options?: PostOptions) =>
      http.post<Omit<Notification, "opens">>(path`/notifications/${id}/pause`, options, pause),

    /** Sends what waits. Resuming twice is no error. */
    resume: (id: string, options?: PostOptions) =>
      http.post<Omit<Notification, "opens">>(path`/notifications/${id}/resume`, options),

    /** How far the recipients of a notification are. */
    recipients,

    /** The recipients that were refused or have no device, by line. */
    recipientErrors: (id: string, options?: ListOptions) =>
      list<LineError>(http, path`/notifications/${id}/recipients/errors`, options),

    /**
     * Uploads the recipients of a notification that was sent with `recipients: { upload }`, and resumes a broken upload. `open` must return
     * the whole file each time. Resolves when Herald has stored all lines; it may still send to them.
     */
    uploadRecipients: (id: string, open: () => FileBody, options: UploadOptions = {}): Promise<Recipients> =>
      resumeUpload<Recipients>(http, open, options, {
        target: path`/notifications/${id}/recipients`,
        read: (signal) => recipients(id, { signal }),
        isWhole: ({ complete }) => complete,
      }),

    /** Reads and counts a file as {@link uploadRecipients} would, with its first `errors`. Stores and sends nothing. */
    dryRunRecipients: (
      id: string,
      file: FileBody,
      { contentType = "application/x-ndjson", signal }: Pick<UploadOptions, "contentType" | "signal"> = {},
    ): Promise<Recipients> =>
      http.upload<Recipients>(path`/notifications/${id}/recipients`, file, {
        query: { dryRun: true },
        headers: { "content-type": contentType },
        signal,
      }),

    /** One row for each device. */
    deliveries: (id: string, options?: ListOptions & { readonly status?: DeliveryStatus | undefined }) =>
      list<Delivery>(http, path`/notifications/${id}/deliveries`, options),

    /** The delivery trace of one device: why it got the notification or did not, as data and in sentences. */
    trace: (id: string, deviceId: string, options?: CallOptions) =>
      http.get<DeliveryTrace>(path`/notifications/${id}/devices/${deviceId}`, options),
  };
};
