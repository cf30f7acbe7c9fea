import { contractOf, type DeadLetter, DeadLetterId, headerNames, NotificationId, ProjectId } from "@herald/contracts";
import type { Stored } from "../direct-read.ts";
import { brokerHeaders, keptPrefix } from "../message-headers.ts";

export const deadLetterSubjects = "push.dlq.v1.>";
export const deadLetterSubject = (durable: string): string => `push.dlq.v1.${durable}`;
const prefix = deadLetterSubject("");

/** Describes a dead letter by its headers, never its body. The result matches its schema, whatever the headers contain. */
export const describeLetter = ({
  sequence,
  subject,
  headers,
  storedAt,
}: Omit<Stored, "body" | "pending">): DeadLetter => {
  const origin = headers.get(headerNames.deadSubject);
  const contract = contractOf(origin);
  const ids = [...origin.split("."), ...headers.get(keptPrefix + brokerHeaders.messageId).split("/")];
  const projectId = ids.find((part) => ProjectId.safeParse(part).success) as ProjectId | undefined;
  const notificationId = ids.find((part) => NotificationId.safeParse(part).success) as NotificationId | undefined;
  const replayOf = DeadLetterId.safeParse(headers.get(headerNames.replayOf)).data;
  return {
    id: String(sequence),
    durable: subject.slice(prefix.length),
    ...(contract ? { message: contract.name } : {}),
    ...(projectId ? { project_id: projectId } : {}),
    ...(notificationId ? { notification_id: notificationId } : {}),
    subject: origin,
    reason: headers.get(headerNames.deadReason),
    detail: headers.get(headerNames.deadDetail),
    deliveries: Math.max(0, Math.trunc(Number(headers.get(headerNames.deadDeliveries)) || 0)),
    died_at: timeOf(headers.get(headerNames.deadAt), storedAt).toISOString(),
    ...(replayOf ? { replay_of: replayOf } : {}),
  };
};

const timeOf = (text: string, otherwise: Date): Date => {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? otherwise : time;
};
