import { join } from "node:path";

/** The settings of a foreign server. It listens with TLS and forwards everything to `upstream`, both on 127.0.0.1. */
export type Site = {
  readonly dir: string;
  readonly port: number;
  readonly upstream: number;
  /** Files: the certificate, its key, and both in one. */
  readonly certificate: string;
  readonly privateKey: string;
  readonly both: string;
};

export type ForeignServer = {
  readonly name: string;
  /** The command that must be on the PATH, and the Debian package that contains it. */
  readonly command: string;
  readonly debian: string;
  readonly config: (site: Site) => string;
  /** Arguments that start the server in the foreground: the command, or the program that `build` made. */
  readonly start: (config: string, site: Site) => readonly string[];
  readonly build?: (program: string) => readonly string[];
  /** Another server of this table that this one forwards to with HTTP/2. */
  readonly before?: string;
  /** Sends GOAWAY after this many requests on a connection. */
  readonly goAwayAfter?: number;
  /** Concurrent requests that the server processes for one connection. */
  readonly streams: number;
  /** Always sends trailers; other servers may. */
  readonly trailers?: true;
  /** The signal for a graceful stop. */
  readonly stop: NodeJS.Signals;
};

/** Every server forwards a request only once, so a repeated request is this client's fault. */
export const foreignServers: readonly ForeignServer[] = [
  {
    name: "nginx",
    command: "nginx",
    debian: "nginx",
    goAwayAfter: 1_000,
    streams: 100,
    trailers: true,
    stop: "SIGQUIT",
    start: (config, { dir }) => ["-e", "stderr", "-p", dir, "-c", config],
    config: ({ dir, port, upstream, certificate, privateKey }) => `
      daemon off; worker_processes 1; pid ${dir}/pid; error_log stderr error;
      ${process.getuid?.() === 0 ? "user root;" : ""}
      events { worker_connections 4096; }
      http {
        access_log off; client_body_temp_path ${dir}/body; proxy_temp_path ${dir}/proxy;
        fastcgi_temp_path ${dir}/fastcgi; uwsgi_temp_path ${dir}/uwsgi; scgi_temp_path ${dir}/scgi;
        upstream counter { server 127.0.0.1:${upstream}; keepalive 200; }
        server {
          listen 127.0.0.1:${port} ssl http2; ssl_certificate ${certificate}; ssl_certificate_key ${privateKey};
          keepalive_requests 1000; http2_max_concurrent_streams 100;
          location / {
            proxy_pass http://counter; proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_next_upstream off; proxy_buffer_size 64k; proxy_buffers 8 64k; add_trailer x-checksum none;
          }
        }
      }`,
  },
  {
    name: "Apache",
    command: "apache2",
    debian: "apache2",
    streams: 6, // the initial value of mod_http2; it allows more as the client reads its answers
    trailers: true,
    stop: "SIGWINCH",
    start: (config) => ["-X", "-f", config],
    config: ({ dir, port, upstream, certificate, privateKey }) => `
      ServerRoot ${dir}
      ServerName localhost
      PidFile ${dir}/pid
      ErrorLog ${dir}/error.log
      DefaultRuntimeDir ${dir}
      ${process.getuid?.() === 0 ? "User #65534\nGroup #65534" : ""}
      ${["mpm_event", "authz_core", "ssl", "socache_shmcb", "http2", "proxy", "proxy_http"]
        .map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`)
        .join("\n")}
      Listen 127.0.0.1:${port}
      Protocols h2
      H2MaxSessionStreams 100
      MaxKeepAliveRequests 0
      SSLEngine on
      SSLCertificateFile ${certificate}
      SSLCertificateKeyFile ${privateKey}
      ProxyPass / http://127.0.0.1:${upstream}/ retry=0
      `,
  },
  {
    name: "h2o",
    command: "h2o",
    debian: "h2o",
    streams: 100,
    stop: "SIGTERM",
    start: (config) => ["-c", config],
    config: ({ dir, port, upstream, certificate, privateKey }) => `
user: ${process.getuid?.() === 0 ? "root" : "nobody"}
pid-file: ${dir}/pid
num-threads: 1
http2-max-concurrent-requests-per-connection: 100
listen: { host: 127.0.0.1, port: ${port}, ssl: { certificate-file: ${certificate}, key-file: ${privateKey} } }
hosts:
  default:
    paths:
      /: { proxy.reverse.url: "http://127.0.0.1:${upstream}/", proxy.timeout.keepalive: 0 }
`,
  },
  {
    name: "Go",
    command: "go",
    debian: "golang-go",
    goAwayAfter: 1_000,
    streams: 100,
    trailers: true,
    stop: "SIGTERM",
    build: (program) => ["build", "-o", program, join(import.meta.dirname, "foreign-server.go")],
    start: (_, { port, upstream, certificate, privateKey }) => [`${port}`, `${upstream}`, certificate, privateKey],
    config: () => "",
  },
  {
    name: "HAProxy before Go",
    command: "haproxy",
    debian: "haproxy",
    before: "Go",
    streams: 100,
    stop: "SIGUSR1",
    start: (config) => ["-db", "-f", config],
    config: ({ port, upstream, both }) => `
global
  tune.h2.max-concurrent-streams 100
  tune.bufsize 65536
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  retries 0
frontend tls
  bind 127.0.0.1:${port} ssl crt ${both} alpn h2
  default_backend inner
backend inner
  server inner 127.0.0.1:${upstream} ssl verify none alpn h2
`,
  },
];
