import { Icon } from "./icon.tsx";
import { type Json, objectOf } from "./json.ts";

export type Shown = {
  readonly title?: string | undefined;
  readonly body?: string | undefined;
  readonly image?: string | undefined;
  readonly link?: string | undefined;
  /** Titles of its buttons. */
  readonly buttons?: readonly string[];
  /** How the platform presents it, in words. */
  readonly notes?: readonly string[];
};

const at = (value: unknown, ...path: string[]): unknown =>
  path.reduce<unknown>(
    (inner, name) => (typeof inner === "object" && inner ? (inner as Json)[name] : undefined),
    value,
  );

const text = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);

const interruptions: Readonly<Record<string, string>> = {
  passive: "Passive: no sound, the screen stays dark",
  "time-sensitive": "Time Sensitive",
  critical: "Critical: sounds even if the device is muted",
};

/** How a platform presents a payload: its urgency, its group, its channel, its icon. */
const notesOf = (platform: string, payload: unknown): string[] => {
  const message = at(payload, "message");
  const [thread, channel, icon] = [
    platform === "ios" ? text(at(payload, "aps", "thread-id")) : text(at(message, "data", "thread")),
    text(at(message, "android", "notification", "channel_id")) ?? text(drawnBy(message)?.channel),
    platform === "web" ? text(at(payload, "notification", "icon")) : undefined,
  ];
  return [
    interruptions[String(at(payload, "aps", "interruption-level"))],
    channel && `Channel ${channel}`,
    thread && `Thread ${thread}`,
    icon && `Icon ${icon}`,
  ].filter((note) => note !== undefined && note !== "") as string[];
};

const titlesOf = (buttons: unknown): string[] =>
  Array.isArray(buttons) ? buttons.flatMap((button) => text(at(button, "title")) ?? []) : [];

/** What an Android app draws itself: JSON in the data of a message. */
const drawnBy = (message: unknown): Json | undefined => {
  const drawn = at(message, "data", "herald");
  return typeof drawn === "string" ? objectOf(drawn) : undefined;
};

/** The visible fields of a platform's payload. */
export const shownBy = (platform: string, payload: unknown): Shown => {
  const message = at(payload, "message") ?? payload;
  const drawn = drawnBy(message);
  const from = platform === "ios" ? at(payload, "aps", "alert") : (drawn ?? at(message, "notification"));
  return {
    title: text(at(from, "title")),
    body: text(at(from, "body")) ?? text(from),
    image: text(at(from, "image")) ?? text(at(payload, "image")),
    link: text(at(payload, "link_to")) ?? text(at(message, "data", "link_to")),
    buttons: titlesOf(drawn?.buttons ?? at(payload, "buttons")),
    notes: [...(drawn ? ["Drawn by the app"] : []), ...notesOf(platform, payload)],
  };
};

/** A notification as the platform's lock screen shows it. An image is shown as its URL: the console loads nothing from other hosts. */
export const LockScreen = ({ platform, shown, app }: { platform: string; shown: Shown; app: string }) => (
  <div className={`lock lock-${platform}`}>
    {platform !== "web" && (
      <div className="lock-clock" aria-hidden="true">
        9:41
      </div>
    )}
    <div className="lock-card">
      <div className="lock-app">
        <img src="/console/icon.svg" alt="" width={18} height={18} />
        <span className="cut grow" dir="auto">
          {app}
        </span>
        <span>now</span>
      </div>
      {shown.notes?.map((note) => (
        <div key={note} className="lock-note break">
          {note}
        </div>
      ))}
      {shown.title && (
        <div className="lock-title" dir="auto">
          {shown.title}
        </div>
      )}
      {shown.body && (
        <div className="lock-body" dir="auto">
          {shown.body}
        </div>
      )}
      {!shown.title && !shown.body && <div className="lock-body lock-none">Title and text appear here.</div>}
      {shown.image && (
        <div className="lock-image">
          <Icon name="image" size={22} />
          <span className="break">{shown.image}</span>
        </div>
      )}
      {shown.buttons !== undefined && shown.buttons.length > 0 && (
        <ul className="lock-buttons" aria-label="Buttons">
          {shown.buttons.map((title, place) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: two buttons may have one title
            <li key={place} className="break" dir="auto">
              {title}
            </li>
          ))}
        </ul>
      )}
    </div>
  </div>
);
