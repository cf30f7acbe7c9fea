import { Box, type BoxProps, Group, Stack, Text } from "@mantine/core";
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

const onWallpaper = { p: "18px 14px 26px", bdrs: 16 };

/** The screen behind the card, and the card. Phones look alike in both colour schemes. */
const looks: Readonly<Record<string, { readonly screen: BoxProps; readonly card: BoxProps }>> = {
  ios: {
    screen: { ...onWallpaper, bg: "linear-gradient(160deg, #23485a, #38365e 60%, #513a5b)" },
    card: { bdrs: 16 },
  },
  android: {
    screen: { ...onWallpaper, bg: "linear-gradient(200deg, #1f4d40, #254a63 70%, #2c3a66)" },
    card: { bdrs: 22 },
  },
  web: {
    screen: { p: 14, bdrs: 10, bg: "color-mix(in srgb, var(--muted) 16%, var(--panel))" },
    card: { bdrs: 8, bd: "1px solid rgb(0 0 0 / 10%)" },
  },
};
const pale = "#4a5556";
const grey = "#dfe5e5";
const buttonLook = { bdrs: 8, px: 10, py: 4, bg: grey, fz: "xs", fw: 550 } as const;

/** A notification as the platform's lock screen shows it. An image is shown as its URL: the console loads nothing from other hosts. */
export const LockScreen = ({ platform, shown, app }: { platform: string; shown: Shown; app: string }) => (
  <Box {...looks[platform]?.screen}>
    {platform !== "web" && (
      <Text c="#fff" ta="center" fz="2.5rem" fw={300} lh={1} mt={4} mb={18} aria-hidden="true">
        9:41
      </Text>
    )}
    <Box bg="#f4f6f6" c="#14191a" px={13} py={11} fz="sm" lh={1.4} {...looks[platform]?.card}>
      <Group gap={7} wrap="nowrap" fz="xs" c={pale} mb={4}>
        <img src="/console/icon.svg" alt="" width={18} height={18} style={{ borderRadius: 5 }} />
        <span className="cut grow" dir="auto">
          {app}
        </span>
        <span>now</span>
      </Group>
      {shown.notes?.map((note) => (
        <Text key={note} className="lock-note break" fz="0.6875rem" fw={550} c={pale}>
          {note}
        </Text>
      ))}
      {shown.title && (
        <Text className="lock-title break" fw={620} dir="auto">
          {shown.title}
        </Text>
      )}
      {shown.body && (
        <Text className="lock-body break" lineClamp={6} style={{ whiteSpace: "pre-wrap" }} dir="auto">
          {shown.body}
        </Text>
      )}
      {!shown.title && !shown.body && (
        <Text c={pale} fs="italic">
          Title and text appear here.
        </Text>
      )}
      {shown.image && (
        <Stack align="center" gap={4} mt={8} px={10} py="md" bdrs={10} bg={grey} c="#435051" fz="0.6875rem" ta="center">
          <Icon name="image" size={22} />
          <span className="break">{shown.image}</span>
        </Stack>
      )}
      {shown.buttons !== undefined && shown.buttons.length > 0 && (
        <Group gap={6} mt={10} role="list" aria-label="Buttons">
          {shown.buttons.map((title, place) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: two buttons may have one title
            <Text key={place} role="listitem" className="break" dir="auto" {...buttonLook}>
              {title}
            </Text>
          ))}
        </Group>
      )}
    </Box>
  </Box>
);
