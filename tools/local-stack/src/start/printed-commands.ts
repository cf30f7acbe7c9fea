export type CommandInput = { gateway: string; control: string; project: { id: string; token: string } };

export type PrintedCommand = { does: string; command: string };

/** Looks like an APNs device token; registering it again gives the same device. */
const deviceToken = "c0ffee".padEnd(64, "0");

/**
 * A first push in four commands for a POSIX shell: `curl`, and `sed` to extract values from an answer. No command depends on variables
 * of another, so each can be repeated.
 */
export function printedCommands({ gateway, control, project }: CommandInput): PrintedCommand[] {
  const api = `${gateway}/api/v1`;
  const json = "-H 'Content-Type: application/json'";
  const bearer = `-H 'Authorization: Bearer ${project.token}'`;
  const device = { device: { token: deviceToken, platform: "ios" } };
  const notification = {
    notification: { title: "Hello", body: "Sent by Herald", link_to: "/welcome", targets: [`token:${deviceToken}`] },
  };
  // The last push is the last match; a device token never begins with `v2.`, an open token always does.
  const last = (pattern: string) => `$(printf %s "$pushes" | sed 's/.*${pattern}.*/\\1/')`;
  const open = [
    `pushes=$(curl -s ${control}/pushes)`,
    `id=${last('"notification_id":"\\([^"]*\\)"')}`,
    `token=${last('"token":"\\(v2\\.[^"]*\\)"')}`,
    `curl -s -w '%{http_code}\\n' -X PUT "${api}/notifications/$id/open" ${json} -d '{"project_id":"${project.id}","token":"'"$token"'"}'`,
  ];
  return [
    { does: "register a device", command: `curl -s ${api}/devices ${bearer} ${json} -d '${JSON.stringify(device)}'` },
    {
      does: "send it a notification",
      command: `curl -s ${api}/notifications ${bearer} ${json} -d '${JSON.stringify(notification)}'`,
    },
    { does: "see what arrived", command: `curl -s ${control}/pushes` },
    { does: "open the last one, as the device would (204)", command: open.join("; ") },
  ];
}
