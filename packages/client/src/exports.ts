import type {
  DeliveryStatus,
  Device,
  ExportedDelivery,
  ExportedDevice,
  ExportedOpen,
  ExportedReceipt,
  Notification,
} from "./api-types.ts";
import type { DeviceListOptions } from "./devices.ts";
import { HeraldError } from "./error.ts";
import { backoffMs, type CallOptions, type Http, isTemporary, sleep } from "./http.ts";
import type { TimeListOptions } from "./list.ts";
import type { NotificationListOptions } from "./notifications.ts";

export type ExportOptions = CallOptions & {
  /** The `id` of the last row that you have: the export resumes after it. */
  readonly after?: string | undefined;
};

export type ExportFormat = "ndjson" | "csv";

export type DeviceExportOptions = ExportOptions &
  Omit<DeviceListOptions, "sort" | "perPage"> & {
    /** `keys`: include the keys of Web Push subscriptions. */
    readonly include?: "keys" | undefined;
  };
type OfNotification = ExportOptions & { readonly notification?: string | undefined };
type TimeRange = Pick<TimeListOptions, "createdAfter" | "createdBefore">;

/** The row type and the options of each export. */
type Exports = {
  devices: [row: ExportedDevice, options: DeviceExportOptions];
  notifications: [row: Notification, options: ExportOptions & Omit<NotificationListOptions, "sort" | "perPage">];
  deliveries: [
    row: ExportedDelivery,
    options: OfNotification & TimeRange & { readonly status?: DeliveryStatus | undefined },
  ];
  opens: [row: ExportedOpen, options: OfNotification];
  receipts: [row: ExportedReceipt, options: OfNotification];
};
export type ExportName = keyof Exports;

/** A row as text, with its line end. `id` is undefined for the header row of a CSV. */
export type ExportedText = { readonly id: string | undefined; readonly text: string };

const lines = { ndjson: /[^\n]*\n/gy, csv: /[^"\r\n]*(?:"[^"]*"[^"\r\n]*)*\r\n/gy };
/** Failures in a row without a new row of the export. */
const maxTries = 5;

/** The complete lines of a body. Throws if the body ends within a line. */
async function* linesOf(body: ReadableStream<Uint8Array>, format: ExportFormat) {
  const decoder = new TextDecoder();
  const line = lines[format];
  let text = "";
  for await (const bytes of body) {
    text += decoder.decode(bytes, { stream: true });
    const whole = text.match(line) ?? [];
    yield* whole;
    text = text.slice(whole.join("").length);
  }
  if (text !== "") throw new Error("cut off");
}

/** Resumes after the last row if the connection breaks or Herald is unavailable, so each row comes once. */
async function* openExport(
  http: Http,
  name: ExportName,
  format: ExportFormat,
  { signal, after, ...filters }: ExportOptions,
): AsyncGenerator<ExportedText> {
  let last = after;
  for (let failures = 0; ; ) {
    try {
      const response = await http.stream(`/exports/${name}`, {
        query: { ...filters, format, after: last },
        signal,
      });
      let head = format === "csv" && !last;
      for await (const text of linesOf(response.body as ReadableStream<Uint8Array>, format)) {
        failures = 0;
        if (!head) last = format === "csv" ? text.slice(0, text.indexOf(",")) : (JSON.parse(text) as Device).id;
        yield { id: head ? undefined : last, text };
        head = false;
      }
      return;
    } catch (error) {
      signal?.throwIfAborted();
      const isKnown = error instanceof HeraldError;
      if (isKnown && !isTemporary(error)) throw error;
      if (++failures >= maxTries)
        throw isKnown ? error : new HeraldError("unreachable", "the export was cut off", { cause: error });
    }
    await sleep(backoffMs(failures), signal);
  }
}

export const createExports = (http: Http) => {
  const rows = <Name extends ExportName>(name: Name) =>
    async function* (options: Exports[Name][1] = {}): AsyncGenerator<Exports[Name][0], void, void> {
      for await (const { text } of openExport(http, name, "ndjson", options)) yield JSON.parse(text);
    };
  return {
    /** All devices, as an async iterator. A broken export is resumed, so each row comes once. Needs the scope `export`. */
    devices: rows("devices"),
    notifications: rows("notifications"),
    /** The result of each notification for each device. */
    deliveries: rows("deliveries"),
    opens: rows("opens"),
    /** What arrived and what was dismissed. */
    receipts: rows("receipts"),
    /** An export as lines of text, for files. */
    lines: <Name extends ExportName>(name: Name, format: ExportFormat, options: Exports[Name][1] = {}) =>
      openExport(http, name, format, options),
  };
};
