/** An error for people. Loaded when the first one is shown. */
type ProblemText = {
  /** What happened. */
  readonly title: string;
  /** What to do. */
  readonly next: string;
  /** The API's sentences say more than these: they are shown at once. Otherwise they wait behind "Details". */
  readonly open?: true;
};

const text = (title: string, next: string): ProblemText => ({ title, next });

const missing = (what: string): ProblemText =>
  text(`This ${what} does not exist`, "It may have been deleted meanwhile. Reload the page.");
const full = (what: string): ProblemText =>
  text(`This project has as many ${what} as it may have`, "Delete one that is no longer needed, then try again.");
const soon = (what: string): ProblemText =>
  text(
    `${what} does not answer`,
    "Try again in a minute. If it persists, ask an operator of Herald to check Operations.",
  );
const notNow = (what: string): ProblemText => text(what, "Wait a moment, then try again.");
const otherProgram = (what: string): ProblemText =>
  text(what, "Reload the page. If it happens again, report it with the details.");

export const problemTexts: Readonly<Record<string, ProblemText>> = {
  "unexpected-answer": text(
    "Something else than Herald answered",
    "Check that no proxy or sign-in page stands between your browser and Herald.",
  ),

  // Signing in and roles
  unauthenticated: text(
    "This sign-in is not valid",
    "Check that you copied the whole token, and that it still exists.",
  ),
  forbidden: { title: "You may not do this", next: "Ask an admin of Herald if you need to.", open: true },
  "csrf-token-invalid": text("This page belongs to an earlier sign-in", "Reload the page, then try again."),
  "session-not-found": text("You are signed out", "Sign in again."),
  "sign-in-expired": text("The sign-in took too long, or was begun in another tab", "Sign in again."),
  "sign-in-not-permitted": text("You may not use Herald yet", "Ask an admin of Herald for a role or a group."),
  "identity-token-invalid": text(
    "Herald could not verify what your company's identity provider said",
    "Tell an admin of Herald.",
  ),
  "identity-provider-unavailable": notNow("Your company's identity provider does not answer"),
  "identity-provider-refused": text("Your company's identity provider refuses Herald", "Tell an admin of Herald."),

  // What was typed
  "validation-failed": { title: "Something here is not accepted", next: "Change it as follows.", open: true },
  "ambiguous-device": text("More than one device has this push token", "Find the device by its id."),
  "body-too-large": text("This is too large", "Shorten it or send fewer at once."),
  "malformed-json": otherProgram("Herald could not read this page's request"),
  "malformed-request": otherProgram("Herald could not read this page's request"),
  "unsupported-media-type": otherProgram("Herald could not read this page's request"),
  "not-acceptable": otherProgram("Herald could not read this page's request"),
  "method-not-allowed": otherProgram("This page and Herald have different versions"),
  "route-not-found": otherProgram("This page and Herald have different versions"),

  // What is not there
  "project-not-found": missing("project"),
  "token-not-found": missing("token"),
  "operator-not-found": missing("operator"),
  "device-not-found": missing("device"),
  "identity-key-not-found": missing("identity key"),
  "topic-not-found": missing("topic"),
  "kind-not-found": missing("kind"),
  "template-not-found": missing("template"),
  "import-not-found": missing("import"),
  "notification-not-found": missing("notification"),
  "activity-not-found": missing("Live Activity"),
  "vapid-key-not-found": missing("Web Push key"),
  "dead-letter-not-found": missing("dead letter"),
  "webhook-not-found": missing("webhook"),
  "webhook-message-not-found": missing("webhook message"),
  "provider-not-found": text("This provider is not set up", "Add its credential under Settings, Providers."),
  "user-not-found": text(
    "No device has this user",
    "Users appear when they log in on a device. Check the spelling of the id.",
  ),
  "notification-gone": text("This notification was deleted after its retention", "Statistics still count it."),
  "position-gone": text("These events have expired", "Reload the page."),

  // What is in the way
  "project-key-taken": text("Another project has this key", "Choose another key."),
  "token-in-use": text("Another device has this push token", "Find that device by its token."),
  "topic-exists": text("This topic exists already", "Choose another name, or change the existing topic."),
  "topic-closed": text(
    "Apps may not subscribe to this topic themselves",
    "Open the topic, or subscribe the device here.",
  ),
  "identity-key-limit": full("identity keys"),
  "kind-limit": full("kinds"),
  "template-limit": full("templates"),
  "webhook-limit": full("webhooks"),
  "too-many-vapid-keys": full("Web Push keys"),
  "device-quota-exceeded": text(
    "This project has as many devices as it may have",
    "Raise its limit of devices under Settings, Limits.",
  ),
  "import-completed": text("This import has its whole file already", "Start a new import for another file."),
  "import-position-mismatch": text(
    "The upload continues at another line",
    "Start the upload again with the whole file.",
  ),
  "recipients-complete": text("This notification has all its recipients", "Nothing needs to be uploaded."),
  "activity-exists": text("Another Live Activity had this id", "Choose another id."),
  "activity-ended": text("This Live Activity has ended", "Begin another one."),
  "notification-final": text("This notification has already ended", "Nothing is left to decide, pause or cancel."),
  "notification-started": text(
    "This notification is being sent already",
    "Its time can no longer be changed. You can cancel what is not sent yet.",
  ),
  "notification-proposed": text("This notification waits for approval", "Cancel it and send another one."),
  "approval-required": text(
    "So many devices need approval, for which a Live Activity cannot wait",
    "Start it for fewer devices.",
  ),
  "audience-grew": { title: "The number of devices has changed", next: "Nothing is sent yet.", open: true },
  "recipients-incomplete": text(
    "The file of its recipients is not complete",
    "Wait until the whole file is uploaded, then try again.",
  ),
  "project-paused": text("Sending is paused", "Resume it, then try again."),
  "replay-refused": text("This dead letter cannot be replayed", "Details says why. You can discard it."),
  "vapid-key-staged": text("Another Web Push key waits already", "Make that one current, or remove it first."),
  "vapid-key-current": text("This is the current Web Push key", "Make another key current first."),
  "vapid-key-in-use": text("Browsers still use this Web Push key", "Wait until they have changed to the current key."),
  "webhook-disabled": text("This webhook is switched off", "Switch it on, then try again."),
  "user-token-invalid": text("The user token is not valid", "The app must sign in again."),
  "user-token-used": text("A newer user token was used already", "The app must sign in again."),
  "request-in-progress": notNow("The same request is still in progress"),
  "idempotency-key-reused": otherProgram("Herald has seen this request with other content"),

  // What passes
  "rate-limited": notNow("These were too many requests at once"),
  "quota-exceeded": { title: "The project has used up its quota", next: "Wait until it is free again.", open: true },
  overloaded: notNow("Herald has too much to do"),
  "queue-full": notNow("Herald's queue is full"),
  "bus-unavailable": soon("Herald's message bus"),
  "database-unavailable": soon("A database of Herald"),
  "service-unavailable": soon("A part of Herald"),
  internal: text("Herald failed", "Try again. If it fails again, report it with the details."),
};

const unknown = text("Herald refused this", "Details says why.");

export const problemTextOf = (slug: string): ProblemText =>
  Object.hasOwn(problemTexts, slug) ? (problemTexts[slug] ?? unknown) : unknown;
