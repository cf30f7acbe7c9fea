import {
  type Approval,
  isNowOrNever,
  isTemplated,
  knownZone,
  lifeMsOf,
  maxProposedMs,
  type Notification,
  type NotificationContent,
  type NotificationId,
  ofDevice,
  type Platform,
  type ProjectId,
  type Proposal,
  type SendNotification,
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
import type { RenderedSend } from "./personalize.ts";
import { renderLiquid } from "./render-liquid.ts";
import type { TemplateDirectory } from "./templates.ts";

/** The broker's default limit for a message is 1 MiB; headers and the fields of a dead letter need the rest. */
const maxCommandBytes = 1_000_000;

type Asked = SendNotification["notification"];

export type RenderDeps = {
  readonly templates: Pick<TemplateDirectory, "find">;
  readonly projects: Pick<ProjectDirectory, "receipts" | "defaultTimeZone">;
};

/** The content of a notification whose texts are its own. */
const ownContent = (asked: Asked): RenderedSend => {
  const { template: _, variables: __, locale: ___, recipients: ____, dry_run: _____, targets = [], ...own } = asked;
  return { notification: { ...own, targets } };
};

/**
 * A notification with its final texts, or with texts for each recipient, and with what its project sets. Throws validation-failed, and
 * bus-unavailable when it names a template.
 */
export const renderSend = async (
  { templates, projects }: RenderDeps,
  projectId: ProjectId,
  asked: Asked,
): Promise<RenderedSend> => {
  const rendered = isTemplated(asked) ? await renderLiquid(templates, projectId, asked) : ownContent(asked);
  const { notification, ...personal } = rendered;
  const receipts = projects.receipts(projectId);
  const isShown = !notification.silent && notification.push_type === undefined;
  const asks = receipts && notification.receipts === undefined && isShown;
  const zone = notification.time_zone === ofDevice ? projects.defaultTimeZone(projectId) : undefined;
  return { notification: asks ? { ...notification, receipts } : notification, ...personal, ...(zone && { zone }) };
};

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
  const { ttl, push_type: type } = notification;
  const isLateUseless = ttl === undefined && type !== undefined && isNowOrNever(type);
  const content = isLateUseless ? { ...notification, ttl: 0 } : notification;
  return {
    projectId,
    notificationId: id,
    content,
    acceptedAt: at.toISOString(),
    ...(content.send_at === undefined
      ? { expiresAt: new Date(at.getTime() + lifeMsOf(content)).toISOString() }
      : scheduleOf(content, { at, zone: knownZone(zone) })),
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
  if (command.content.send_at !== undefined)
    problems.push(...scheduleProblems(command.content, at).map((problem) => `notification.${problem}`));
  if (send.bytes > maxCommandBytes) {
    problems.push(
      `notification: is larger than ${maxCommandBytes} bytes: use fewer ${command.recipients ? "recipients" : "targets, or a topic"}`,
    );
  }
  if (problems.length > 0) throw new HeraldError("validation-failed", problems);
  return send;
};

/** A proposal as the API shows it before it is stored. */
const proposedView = ({ limit, devices, sender }: Proposal, acceptedAt: string): Approval => ({
  status: "proposed",
  limit,
  ...(devices !== undefined && { devices }),
  sender,
  expires_at: new Date(Date.parse(acceptedAt) + maxProposedMs).toISOString(),
});

/** An accepted notification as the API shows it before sending starts. */
export const acceptedView = ({
  notificationId,
  content,
  acceptedAt,
  sendAt,
  proposal,
}: Pick<SendV1, "notificationId" | "content" | "acceptedAt" | "sendAt" | "proposal">): Notification => ({
  id: notificationId,
  status: proposal ? "proposed" : sendAt === undefined ? "accepted" : "scheduled",
  ...content,
  approval: proposal && proposedView(proposal, acceptedAt),
  rollout: content.rollout && { ...content.rollout, phase: "waiting", released: 0, outcomes: 0, failed: 0 },
  counts: {
    ...{ devices: 0, accepted: 0, failed: 0, expired: 0, cancelled: 0, skipped: 0, pending: 0 },
    ...{ opened: 0, receipts_asked: 0, received: 0, dismissed: 0 },
  },
  failures: {},
  skips: {},
  unmatched: [],
  created_at: acceptedAt,
});
