import type { Row } from "./row.ts";
import { activities } from "./rows/activities.ts";
import { approval } from "./rows/approval.ts";
import { backup } from "./rows/backup.ts";
import { brokerRows } from "./rows/broker.ts";
import { brokerLost } from "./rows/broker-lost.ts";
import { busRows } from "./rows/bus.ts";
import { caps } from "./rows/caps.ts";
import { channels } from "./rows/channels.ts";
import { clockRows } from "./rows/clocks.ts";
import { clusterRows } from "./rows/cluster.ts";
import { databaseRows } from "./rows/database.ts";
import { diskFull } from "./rows/disk-full.ts";
import { escalation } from "./rows/escalation.ts";
import { fatalSends } from "./rows/fatal-send.ts";
import { gracefulRows } from "./rows/graceful.ts";
import { killedImport } from "./rows/imports.ts";
import { killedServices } from "./rows/killed-services.ts";
import { pauseRows } from "./rows/pause.ts";
import { providerAnswerRows } from "./rows/provider-answers.ts";
import { quietHours } from "./rows/quiet-hours.ts";
import { killedUpload } from "./rows/recipients.ts";
import { reports } from "./rows/reports.ts";
import { rolloutRows } from "./rows/rollout.ts";
import { rotate, rotateDatabasePassword, rotatePasswords } from "./rows/rotate.ts";
import { singleSendRows } from "./rows/single-sends.ts";
import { slowApns } from "./rows/slow-apns.ts";
import { streamRows } from "./rows/streams.ts";
import { threePlatforms } from "./rows/three-platforms.ts";
import { sideBySide, upgrade } from "./rows/versions.ts";
import { waves } from "./rows/waves.ts";

/**
 * All faults. Rows that kill dispatch are apart from one another: its restart waits longer if it has just been restarted. The largest
 * groups with a common fixture begin first, whatever their place.
 */
export const rows: readonly Row[] = [
  ...killedServices,
  killedImport,
  killedUpload,
  waves,
  quietHours,
  threePlatforms,
  ...databaseRows,
  ...brokerRows,
  backup,
  brokerLost,
  ...pauseRows,
  ...rolloutRows,
  approval,
  escalation,
  ...slowApns,
  ...providerAnswerRows,
  caps,
  ...busRows,
  ...streamRows,
  activities,
  channels,
  ...gracefulRows,
  ...clusterRows,
  diskFull,
  ...singleSendRows,
  ...fatalSends,
  reports,
  ...clockRows,
  sideBySide,
  upgrade,
  rotate,
  rotatePasswords,
  rotateDatabasePassword,
];
