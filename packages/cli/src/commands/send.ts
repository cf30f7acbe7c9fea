import type { DryRun, NewNotification, Notification, Sent } from "@herald/client";
import { knownValues } from "@herald/client/known-values";
import type { Command } from "commander";
import type { Context } from "../context.ts";
import { type Add, numberOption, option, parsePairs, repeatable, shareOption } from "../define.ts";
import { exitCodes, UsageError } from "../failures.ts";
import { readText } from "../read-text.ts";
import { fields, titled } from "../terminal/table.ts";
import { formatNumber, toJson } from "../terminal/text.ts";
import { isProposed, proposalInWords } from "./approvals.ts";
import { inWords, reasons } from "./notifications.ts";
import { pauseInWords } from "./pauses.ts";
import { parseShare } from "./projects.ts";
import {
  plannedEntries,
  type RolloutChoice,
  rolloutOfOptions,
  rolloutOptions,
  rolloutProgress,
  stoppedByItself,
} from "./rollout.ts";
import { readUploaded, rehearsalWords, rehearseRecipients, uploadRecipients, uploadWords } from "./send-recipients.ts";
import { type SendTime, sendTimeOptions } from "./send-time.ts";
import { openFile } from "./upload-file.ts";

type Timing = SendTime & RolloutChoice;

type Options = Timing & {
  readonly to?: string[];
  readonly app?: string;
  readonly pushType?: string;
  readonly pushName?: string;
  readonly title?: string;
  readonly body?: string;
  readonly link?: string;
  readonly image?: string;
  readonly template?: string;
  readonly var?: string[];
  readonly recipients?: string;
  readonly recipientKind?: string;
  readonly resume?: string;
  readonly data?: string[];
  readonly kind?: string;
  readonly label?: string[];
  readonly ttl?: number;
  readonly escalateAfter?: number;
  readonly priority?: string;
  readonly collapseId?: string;
  readonly urgency?: string;
  readonly relevance?: number;
  readonly thread?: string;
  readonly androidChannel?: string;
  readonly icon?: string;
  readonly receipts?: string;
  readonly button?: string[];
  readonly silent?: boolean;
  readonly file?: string;
  readonly key?: string;
  readonly dryRun?: boolean;
  readonly watch?: boolean;
};

const readNotification = async (file: string): Promise<Partial<NewNotification>> => {
  const content = await readText(file);
  try {
    const parsed = JSON.parse(content);
    return parsed.notification ?? parsed;
  } catch {
    throw new UsageError(`${file}: must be JSON, such as { "title": "Hello", "targets": ["all"] }.`);
  }
};

const literal = (pair: string, text: string): string | number | boolean => {
  if (text === "true" || text === "false") return text === "true";
  if (text.trim() !== "" && Number.isFinite(Number(text))) return Number(text);
  throw new UsageError(`--var ${pair}: after := a number, true or false is accepted; a text follows =.`);
};

/** `name=text`, and `name:=value` for a number, true or false. */
export const parseVariables = (pairs: readonly string[] | undefined) =>
  pairs &&
  Object.fromEntries(
    pairs.map((pair) => {
      const [, name = "", kind, value = ""] = /^([^=:]+)(:?=)(.*)$/s.exec(pair) ?? [];
      if (name === "") throw new UsageError(`--var ${pair}: must be name=value.`);
      return [name, kind === ":=" ? literal(pair, value) : value] as const;
    }),
  );

/** A button of `--button track=Track,/orders/42`. */
const parseButton = (text: string) => {
  const [, id, title, link] = /^([^=]+)=([^,]+)(?:,(.+))?$/.exec(text) ?? [];
  if (id === undefined || title === undefined)
    throw new UsageError(`--button ${text}: must be id=title, or id=title,link.`);
  return { id, title, ...(link !== undefined && { link_to: link }) };
};

/** Flags take precedence over the file. */
export const contentOf = async (options: Options): Promise<NewNotification> => {
  const { file, to, link, data, label, at, timeZone, past, collapseId, androidChannel } = options;
  const { title, body, image, kind, ttl, escalateAfter, priority, silent, urgency, relevance, thread, icon } = options;
  const { template, var: variables, app, receipts, button, pushType, pushName, recipients, recipientKind } = options;
  const flags = {
    template,
    recipients: recipients === undefined ? undefined : { upload: recipientKind },
    variables: parseVariables(variables),
    title,
    body,
    targets: to,
    app,
    push_type: pushType,
    push_name: pushName,
    link_to: link,
    image,
    icon,
    data: data && parsePairs(data),
    kind,
    labels: label && parsePairs(label, "--label"),
    send_at: at,
    time_zone: timeZone,
    past,
    rollout: rolloutOfOptions(options),
    ttl,
    escalate_after: escalateAfter,
    priority,
    collapse_id: collapseId,
    urgency,
    relevance,
    thread,
    android_channel: androidChannel,
    silent,
    receipts: receipts === undefined ? undefined : parseShare(receipts),
    buttons: button?.map(parseButton),
  };
  const given = Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined));
  const { targets, ...content } = { ...(file === undefined ? {} : await readNotification(file)), ...given };
  if (targets === undefined && content.recipients !== undefined) return content as NewNotification;
  return { ...content, targets: targets ?? [] } as NewNotification;
};

const dryRunWords = (
  {
    devices,
    unmatched,
    skips = {},
    delayed = [],
    evaluated_later: later = [],
    schedule,
    rollout,
    rendered,
    sizes,
  }: DryRun,
  { terminal }: Context,
): string =>
  [
    fields(
      [
        ["devices", devices.total],
        ...titled(devices, "ios", "android", "web"),
        ["unmatched", unmatched.length > 0 ? unmatched : undefined],
        ["skipped", reasons(skips)],
        ["evaluated later", later.length > 0 ? later : undefined],
        ...plannedEntries(rollout),
      ],
      terminal,
    ),
    ...delayed.map(({ until, reason, devices: count }) => `delayed until ${until}: ${reasons({ [reason]: count })}`),
    ...(schedule ?? []).map(({ at, devices: count }) => `at ${at}: ${formatNumber(count)} devices`),
    ...Object.entries(rendered).map(([name, payload]) => {
      const size = sizes[name as keyof typeof sizes];
      const title = terminal.paint("bold", name === "drawn" ? "android, drawn by the app" : name);
      return `\n${title}${size ? `, ${size.bytes} of ${size.max} bytes` : ""}\n${toJson(payload, 2)}`;
    }),
    "\nNothing was sent.",
  ].join("\n");

/** The number of columns that the longest line needs. */
const wide = 70;

/** Progress of a notification in one line, shorter on a narrow terminal. */
export const progressLine = ({ status, counts, paused, rollout }: Notification, width: number): string => {
  const isWide = width >= wide;
  const barWidth = isWide ? 20 : 8;
  const done = counts.devices - counts.pending;
  const rolling = paused ? undefined : rolloutProgress(rollout, isWide);
  const part = rolling?.share ?? (counts.devices === 0 ? 0 : done / counts.devices);
  const filled = Math.floor(part * barWidth);
  const bar = "█".repeat(filled) + "░".repeat(barWidth - filled);
  const failed = counts.failed > 0 ? `, ${formatNumber(counts.failed)} failed` : "";
  const share = `${formatNumber(done)} of ${formatNumber(counts.devices)}`;
  if (paused) return `${bar} ${share}, paused ${pauseInWords(paused)}`;
  if (rolling && !isWide) return `${bar} ${rolling.words}${failed}`;
  return isWide
    ? `${bar} ${rolling?.words ?? `${status}: ${share}`}, ${formatNumber(counts.accepted)} accepted${failed}`
    : `${bar} ${share}${failed}`;
};

/** Milliseconds between two updates of the progress line. */
const watchMs = 1_000;

/** Shows live counts until it is final, waits for approval, or its rollout has stopped by itself. */
const watch = async (sent: Sent, { signal, terminal }: Context): Promise<Notification> => {
  const stopped = new AbortController();
  let last: Notification = sent;
  const onChange = (now: Notification) => {
    last = now;
    terminal.progress(progressLine(now, terminal.width));
    if (stoppedByItself(now) || isProposed(now)) stopped.abort();
  };
  try {
    return await sent.completed({ signal: AbortSignal.any([signal, stopped.signal]), maxPollMs: watchMs, onChange });
  } catch (error) {
    if (signal.aborted || !stopped.signal.aborted) throw error;
    return last;
  }
};

export const addSend = (program: Command, add: Add) =>
  add<Options>(program, {
    usage: "send",
    does: "Send a notification",
    options: [
      repeatable(
        "--to <target>",
        "topic:news, user:u-17, device:dev_…, token:…, metadata:plan=pro, condition:…, all; repeatable",
      ),
      option("--app <id>", "only devices that name this bundle id or package"),
      option("--push-type <type>", "Apple's push type, such as voip; needs --data or --file").choices(
        knownValues.sendPushType,
      ),
      option("--push-name <kind>", "with --push-type controls: the kind of the control"),
      option("--title <text>", "title"),
      option("--body <text>", "text"),
      option("--link <url>", "opened by a tap: a URL or an in-app path"),
      option("--image <url>", "https URL of an image"),
      option("--template <name>", "published template with its texts and settings"),
      repeatable("--var <name=value>", "value of a variable; name:=value for a number, true or false; repeatable"),
      option(
        "--recipients <file>",
        "instead of --to: a recipient with values of its own a line, as NDJSON or CSV, also as .gz",
      ),
      option("--recipient-kind <kind>", "what the recipients of the file are")
        .choices(knownValues.recipientKind)
        .default("user"),
      option("--resume <id>", "continue the upload of --recipients for a notification whose upload broke"),
      repeatable("--data <name=value>", "for the app; repeatable"),
      option("--kind <kind>", "what sort of message it is, for lists and statistics, such as order-shipped"),
      repeatable("--label <name=value>", "for lists and statistics, such as campaign=spring; repeatable"),
      ...sendTimeOptions,
      ...rolloutOptions,
      numberOption("--ttl <seconds>", "time to live"),
      numberOption("--escalate-after <seconds>", "then an event names the users who have not opened it"),
      option("--priority <priority>", "delivery priority").choices(["high", "normal"]),
      option("--collapse-id <id>", "replaces an earlier notification with this id"),
      option("--urgency <urgency>", "how much it may interrupt").choices(knownValues.urgency),
      shareOption("--relevance <score>", "0 to 1, its order in the summary of iOS"),
      option("--thread <id>", "grouped with others of this thread"),
      option("--android-channel <id>", "notification channel of the Android app"),
      option("--icon <url>", "https URL of an icon, for browsers"),
      option("--receipts <share>", "share of devices asked to report the arrival: on, off or 0 to 1"),
      repeatable("--button <id=title>", "button, with a link after a comma: track=Track,/orders/42; up to three"),
      option("--silent", "wake the app without showing anything"),
      option("--file <file>", "notification as JSON, `-` for stdin; flags take precedence"),
      option("--key <key>", "idempotency key: send only once, however often the command runs"),
      option("--dry-run", "count devices and render payloads, or with --recipients read the file, without sending"),
      option(
        "--watch",
        "show live counts until it is final, or its rollout stops by itself; a send that waits for approval ends it with 0",
      ),
    ],
    examples: [
      ["send --title Hello --to topic:news --dry-run", "count the audience and render the payloads"],
      ["send --title 'Order shipped' --to user:u-17 --link /orders/1 --watch", "send to one user and wait"],
      ["send --template invoice --recipients invoices.csv --dry-run", "read the file, and show its first bad lines"],
      ["send --template invoice --recipients invoices.csv", "a text for each line of a file"],
      ["send --title 'Good morning' --to all --at 2030-01-31T09:00:00+01:00", "schedule it"],
      [
        "send --title 'Good morning' --to all --at 2030-01-31T09:00:00 --time-zone device --past tomorrow",
        "in the morning of each device",
      ],
      [
        "send --title Sale --to all --canary 1% --per-minute 60000 --stop-if failed=5% --watch",
        "begin small, go on slowly, and stop when devices fail",
      ],
    ],
    run: async (context, _, options) => {
      const { terminal, result } = context;
      const { recipients: file, resume } = options;
      if (resume !== undefined && file === undefined) throw new UsageError("--resume needs --recipients <file>.");
      if (resume !== undefined && options.dryRun)
        throw new UsageError("--dry-run is not accepted with --resume: the notification is sent already.");
      const herald = context.herald();
      if (resume !== undefined && file !== undefined)
        return result(uploadRecipients(context, herald, resume, file), uploadWords);
      const notification = await contentOf(options);
      const { notifications } = herald;
      if (file !== undefined && options.dryRun) {
        const read = await rehearseRecipients(context, herald, notification, file);
        await result(read, rehearsalWords);
        return read.refused > 0 ? exitCodes.failed : exitCodes.ok;
      }
      if (file !== undefined) await openFile(file);
      if (options.dryRun) return result(notifications.dryRun(notification), (found) => dryRunWords(found, context));
      const sent = await notifications.send(notification, { idempotencyKey: options.key });
      if (file !== undefined) {
        context.onStop(`Continue with: herald send --recipients ${file} --resume ${sent.id}`);
        terminal.note(`Accepted as ${sent.id}.`);
        const uploaded = await uploadRecipients(context, herald, sent.id, file);
        if (!options.watch)
          return result({ ...sent, recipients: uploaded }, () =>
            [
              uploadWords(uploaded),
              ...(sent.approval && uploaded.recipients > sent.approval.limit ? [proposalInWords(sent)] : []),
              `\`herald notification recipients ${sent.id}\` shows them.`,
            ].join("\n"),
          );
      }
      if (!options.watch)
        return result(sent, () =>
          [
            `${terminal.paint("green", isProposed(sent) ? "Proposed" : "Accepted")} as ${sent.id}${sent.send_at ? `, for ${sent.send_at}` : ""}.`,
            ...(isProposed(sent) ? [proposalInWords(sent)] : []),
            `\`herald notification get ${sent.id}\` shows its progress.`,
          ].join("\n"),
        );
      context.onStop(
        `Stopped watching. ${sent.id} continues: \`herald notification get ${sent.id}\` shows it, \`herald notification cancel ${sent.id}\` stops it.`,
      );
      terminal.note(`Accepted as ${sent.id}.`);
      const final = await watch(sent, context);
      const list = file === undefined ? undefined : await readUploaded(herald, sent.id);
      await result(list === undefined ? final : { ...final, recipients: list }, () =>
        [inWords(final, terminal), ...(list === undefined ? [] : [uploadWords(list)])].join("\n"),
      );
      if (isProposed(final)) {
        terminal.note(proposalInWords(final));
        return exitCodes.ok;
      }
      if (stoppedByItself(final)) {
        terminal.note(
          `It stopped by itself. \`herald notification resume ${sent.id}\` goes on, \`herald notification cancel ${sent.id}\` ends it.`,
        );
        return exitCodes.stopped;
      }
      return final.status === "completed" ? exitCodes.ok : exitCodes.failed;
    },
  });
