/**
 * The configuration of a local nats-server. Every acknowledged message is on disk (`sync_interval: always`) unless the
 * caller gives that up for speed; `extra` is added as it stands, for users and permissions.
 */
export function natsConfig(options: { port: number; folder: string; syncAlways: boolean; extra: string }): string {
  const { port, folder, syncAlways, extra } = options;
  return `# Written at each start; changes are lost.
listen: "127.0.0.1:${port === 0 ? -1 : port}"
server_name: herald-local
ports_file_dir: ${JSON.stringify(folder)}
jetstream {
  store_dir: ${JSON.stringify(folder)}
  # Streams reserve their limits, 20 GB in all, and use little of them; a small disk must not refuse them.
  max_file_store: 64GB
  sync_interval: ${syncAlways ? "always" : '"2m"'}
}
${extra}
`;
}
