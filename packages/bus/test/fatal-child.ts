import { connectBus, consume, defineHandler, handleRequest } from "@herald/bus";
import { openRequests, SendV1 } from "@herald/contracts";
import { createLogger } from "@herald/kit";

/** Started as a process by a test. Ends abruptly, as if out of memory, when it handles a message whose title, or a request whose project, is fatal. */
const [url = "", fatal = ""] = process.argv.slice(2);

const die = () => process.kill(process.pid, "SIGKILL");
const work = () => new Promise((resolve) => setTimeout(resolve, 20));

const log = createLogger({ service: "fatal", level: "fatal" });
const bus = await connectBus({ url, name: "fatal", log });
handleRequest(bus, openRequests.count, async ({ projectId, notificationIds }) => {
  await work();
  if (projectId === fatal) die();
  return { counts: Object.fromEntries(notificationIds.map((id) => [id, 1])) };
});
consume(bus, [
  defineHandler({
    durable: "dispatch-start",
    message: SendV1,
    async handle({ data }) {
      await work();
      if (data.content.title === fatal) die();
      process.stdout.write(`${data.notificationId}\n`);
    },
  }),
]);
