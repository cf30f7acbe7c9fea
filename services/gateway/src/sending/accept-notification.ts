import {
  isNowOrNever,
  knownZone,
  type Notification,
  type NotificationContent,
  type NotificationId,
  type Platform,
  type ProjectId,
  type SendV1,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import {
  findOversizedPayloads,
  hasForms,
  type OpenTokens,
  surelyFitsBytes,
  surelyFitsSiteBytes,
} from "@herald/payload";
import { isSmallSend, scheduleOf, scheduleProblems } from "@herald/rules";
import type { ProjectDirectory } from "../auth/directories.ts";

/** The broker's default limit for a message is 1 MiB; headers and the fields of a dead letter need the rest. */
const maxCommandBytes = 1_000_000;

type Sending = {
  readonly projectId: ProjectId;
  readonly id: NotificationId;
  /** The time of acceptance, identical for every repeat of the request. */
  readonly at: Date;
  readonly notification: NotificationContent;
  /** The time zone of the project's devices without one; absent: UTC. */
  readonly zone?: string | undefined;
} & Pick<SendV1, "personal" | "recipients">;

/** The command that sends a notification, identical for every repeat of the request. */
export const sendCommand = ({ projectId, id, at, notification, zone, personal, recipients }: Sending): SendV1 => {
  const isLateUseless = notification.ttl === undefined && isNowOrNever(notification.push_type);
  const content = isLateUseless ? { ...notification, ttl: 0 } : notification;
  return {
    projectId,
    notificationId: id,
    content,
    acceptedAt: at.toISOString(),
    ...scheduleOf(content, { at, zone: knownZone(zone) }),
    ...(personal && { personal }),
    ...(recipients && { recipients }),
  };
};

/** A send with what was found when it was parsed: no later step parses, measures or encodes it again. */
export type ParsedSend = {
  /** Its id is provisional until its group closes. */
  readonly command: SendV1;
  /** Dispatch may send it without an expansion. */
  readonly small: boolean;
  /** The fields of the command's JSON, without the braces and the id. */
  readonly text: string;
  /** The bytes of the command's JSON, and of its content's. */
  readonly bytes: number;
  readonly contentBytes: number;
};

/** Of the braces and the id. */
const frameBytes = '{"notificationId":"ntf_00000000000000000000000000",}'.length;

/** Throws TypeError for a command that has no JSON. */
export const parsedSend = (command: SendV1): ParsedSend => {
  const { notificationId: _, content, ...rest } = command;
  const contentText = JSON.stringify(content);
  const contentBytes = Buffer.byteLength(contentText);
  const text = `${JSON.stringify(rest).slice(1, -1)},"content":`;
  const bytes = frameBytes + Buffer.byteLength(text) + contentBytes;
  return { command, small: isSmallSend(command), text: text + contentText, bytes, contentBytes };
};

type Rules = {
  /** The platforms whose provider the project has. The payload must fit their limits. */
  readonly platforms: readonly Platform[];
  readonly openTokenBytes: number;
  /** The origin of the project's web app, if its settings name it. */
  readonly site?: string | undefined;
  /** APNs is set up with a certificate. */
  readonly apnsCertificate?: boolean;
};

type Accepting = Sending & Rules;

export type RulesDeps = { readonly openTokens: Pick<OpenTokens, "length">; readonly projects: ProjectDirectory };

/** The rules for a project's notifications. */
export const rulesFor = ({ projects, openTokens }: RulesDeps, projectId: ProjectId): Rules => ({
  platforms: projects.platforms(projectId),
  openTokenBytes: openTokens.length,
  site: projects.site(projectId),
  apnsCertificate: projects.apnsCertificate(projectId),
});

/** Creates the send after the checks that a schema cannot do. Throws validation-failed with all problems. */
export const acceptNotification = (accepting: Accepting): ParsedSend => {
  const { projectId, id: notificationId, at, platforms, openTokenBytes, site, apnsCertificate } = accepting;
  const send = parsedSend(sendCommand(accepting));
  const { command, contentBytes } = send;
  // With buttons or receipts a payload has more than the content: texts that are escaped again, titles twice.
  const surelyFits =
    contentBytes <= (site === undefined ? surelyFitsBytes : surelyFitsSiteBytes) && !hasForms(command.content);
  const origin = { projectId, notificationId };
  const problems = surelyFits ? [] : findOversizedPayloads(command.content, origin, platforms, openTokenBytes, site);
  if (apnsCertificate && command.content.push_type === "location")
    problems.push(
      "notification.push_type: `location` needs a key (.p8) in the APNs settings, which have a certificate",
    );
  problems.push(...scheduleProblems(command.content, at).map((problem) => `notification.${problem}`));
  if (send.bytes > maxCommandBytes) {
    problems.push(
      `notification: is larger than ${maxCommandBytes} bytes: use fewer ${command.recipients ? "recipients" : "targets, or a topic"}`,
    );
  }
  if (problems.length > 0) throw new HeraldError("validation-failed", problems);
  return send;
};

/** An accepted notification as the API shows it before sending starts. */
export const acceptedView = ({
  notificationId,
  content,
  acceptedAt,
  sendAt,
}: Pick<SendV1, "notificationId" | "content" | "acceptedAt" | "sendAt">): Notification => ({
  id: notificationId,
  status: sendAt === undefined ? "accepted" : "scheduled",
  ...content,
  counts: {
    ...{ devices: 0, accepted: 0, failed: 0, expired: 0, cancelled: 0, skipped: 0, pending: 0 },
    ...{ opened: 0, receipts_asked: 0, received: 0, dismissed: 0 },
  },
  failures: {},
  skips: {},
  unmatched: [],
  created_at: acceptedAt,
});
