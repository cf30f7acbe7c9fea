import { Command, type Help } from "commander";
import manifest from "../package.json" with { type: "json" };
import { addActivities } from "./commands/activities.ts";
import { addApply } from "./commands/apply.ts";
import { addCompletion } from "./commands/completion.ts";
import { addDeadLetters } from "./commands/dead-letters.ts";
import { addDevices } from "./commands/devices.ts";
import { addDoctor } from "./commands/doctor.ts";
import { addEvents } from "./commands/events.ts";
import { addExportProject } from "./commands/export-project.ts";
import { addExport } from "./commands/exports.ts";
import { addKinds } from "./commands/kinds.ts";
import { addLogin } from "./commands/login.ts";
import { addNotifications } from "./commands/notifications.ts";
import { addAudit, addOperators } from "./commands/operators.ts";
import { addInstallation } from "./commands/pauses.ts";
import { addProjects } from "./commands/projects.ts";
import { addProviders } from "./commands/providers.ts";
import { addSend } from "./commands/send.ts";
import { addStats } from "./commands/stats.ts";
import { addStatus } from "./commands/status.ts";
import { addTemplates } from "./commands/templates.ts";
import { addTokens } from "./commands/tokens.ts";
import { addTopics } from "./commands/topics.ts";
import { addUsers } from "./commands/users.ts";
import { addWebhooks } from "./commands/webhooks.ts";
import { createAdd, type Execute, numberOption } from "./define.ts";
import { exitCodesHelp } from "./failures.ts";
import type { Terminal } from "./terminal/terminal.ts";

const firstSteps = `
First steps in a clone, with \`npm start\` running in another terminal:
  $ herald doctor
  $ herald send --title Hello --to all --dry-run
  $ herald send --title Hello --to all --watch

Precedence: flags, environment (HERALD_URL, HERALD_TOKEN,
HERALD_ADMIN_TOKEN, HERALD_PROJECT, HERALD_PROFILE), profile, and then
the system that \`npm start\` runs in this clone.`;

/** Option names need half of it. */
const minWidthOfTwoColumns = 60;

/** Puts the description below the name, for narrow terminals. */
const formatBelow: Help["formatItem"] = (term, _, description, helper) => {
  const wrapped = helper.boxWrap(description, (helper.helpWidth ?? minWidthOfTwoColumns) - 4);
  return `  ${term}\n${wrapped.replaceAll(/^/gm, "    ")}`;
};

/** The whole command line. */
export const createProgram = (terminal: Terminal, execute: Execute): Command => {
  const write = (to: (text: string) => void) => (text: string) => to(text.replace(/\n$/, ""));
  const program = new Command("herald")
    .description("Send push notifications with Herald and track their delivery")
    .version(manifest.version, "--version", "print the version")
    .option("--url <url>", "address of the gateway")
    .option("--token <token>", "project token, hpt_…")
    .option("--admin-token <token>", "admin token, or an operator's, hop_…")
    .option("--project <id>", "project id for admin commands, prj_…")
    .option("--profile <name>", "profile that `herald login` saved")
    .addOption(numberOption("--retries <count>", "retries if Herald is unavailable (default: 3)"))
    .addOption(numberOption("--timeout <seconds>", "wait for each answer (default: 30)"))
    .option("--json", "print JSON")
    .option("--no-color", "print without colours, as NO_COLOR does")
    .configureOutput({
      writeOut: write(terminal.print),
      writeErr: write(terminal.note),
      getOutHelpWidth: () => Math.min(terminal.width, 100),
      getErrHelpWidth: () => Math.min(terminal.width, 100),
      getOutHasColors: () => terminal.hasColors,
      getErrHasColors: () => terminal.hasColors,
    })
    .configureHelp({
      minWidthToWrap: 20,
      styleTitle: (title) => terminal.paint("bold", title),
      ...(terminal.width < minWidthOfTwoColumns && { formatItem: formatBelow }),
    })
    .showHelpAfterError("Add --help to see what is accepted.")
    .addHelpText("after", firstSteps + exitCodesHelp)
    .exitOverride();

  const add = createAdd(execute);
  const group = (name: string, does: string): Command => program.command(name).description(does);

  addLogin(program, add);
  addSend(program, add);
  addNotifications(group("notification", "Track, approve, pause and cancel notifications"), add);
  addStats(program, add);
  addEvents(group("events", "Follow events"), add);
  addActivities(group("activity", "Start, update and end Live Activities"), add);
  addDevices(group("device", "Manage devices"), add);
  addExport(group("delivery", "Export deliveries"), add, "deliveries");
  addExport(group("open", "Export opens"), add, "opens");
  addExport(group("receipt", "Export receipts"), add, "receipts");
  addTemplates(group("template", "Manage templates; changes need a token with the scope templates"), add);
  addTopics(group("topic", "Manage topics and subscriptions"), add);
  addUsers(group("user", "Show and erase users"), add);
  addWebhooks(group("webhook", "Manage webhooks"), add);
  addOperators(group("operator", "Manage operators (admin token)"), add);
  addAudit(group("audit", "Show what operators did (admin token)"), add);
  addApply(program, add);
  const projects = group("project", "Manage projects (admin token)");
  addProjects(projects, add);
  addExportProject(projects, add);
  addInstallation(group("installation", "Pause the sends of all projects (admin token)"), add);
  addKinds(group("kind", "Declare kinds of notifications (admin token)"), add);
  addTokens(group("token", "Manage project tokens (admin token)"), add);
  addProviders(group("provider", "Configure APNs, FCM and Web Push (admin token)"), add);
  addDeadLetters(group("dead-letters", "Inspect and replay dead letters (admin token)"), add);
  addStatus(program, add);
  addDoctor(program, add);
  addCompletion(program, add);
  return program;
};
