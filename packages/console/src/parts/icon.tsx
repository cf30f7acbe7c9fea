const paths = {
  overview: "M4 19V10m5.3 9V5m5.4 14v-6m5.3 6V8",
  compose: "M4 20h4L19 9a2.8 2.8 0 0 0-4-4L4 16v4zM13.5 6.5l4 4",
  templates: "M6 3h9l4 4v14H6zM14 3v5h5M9 13h6M9 17h4",
  notifications: "M6 9a6 6 0 1 1 12 0c0 5 2 6 2 7H4c0-1 2-2 2-7zM10 20h4",
  trace: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM20 20l-4.8-4.8",
  devices: "M8 3h8a1 1 0 0 1 1 1v16a1 1 0 0 1-1 1H8a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zM11 18h2",
  topics: "M5 9h14M5 15h14M10 4 8 20M16 4l-2 16",
  users:
    "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3 20c0-3.5 2.5-5.5 6-5.5s6 2 6 5.5M16 4.5a3.5 3.5 0 0 1 0 6.4M17 14.8c2.5.5 4 2.3 4 5.2",
  settings: "M4 7h10m4 0h2M4 17h2m4 0h10M16 9a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM8 19a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
  operations: "M3 12h4l3-8 4 16 3-8h4",
  chevron: "m8 10 4 4 4-4",
  plus: "M12 5v14M5 12h14",
  more: "M12 6h.01M12 12h.01M12 18h.01",
  external: "M14 4h6v6M20 4l-9 9M18 14v5a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V7a1 1 0 0 1 1-1h5",
  check: "m5 12.5 4.5 4.5L19 7.5",
  warning: "M12 4 2.8 20h18.4L12 4zM12 10v4.5M12 17.3v.01",
  image: "M4 5h16v14H4zM4 16l5-5 4 4 2-2 5 5M15 9.5v.01",
  clock: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7v5l3 2",
  send: "M20 4 4 11l6 3 3 6 7-16z",
  copy: "M9 9h10v11H9zM15 9V4H5v11h4",
} as const;

export type IconName = keyof typeof paths;

export const Icon = ({ name, size = 18 }: { readonly name: IconName; readonly size?: number }) => (
  <svg
    width={size}
    height={size}
    viewBox="0 0 24 24"
    fill="none"
    stroke="currentColor"
    strokeWidth={1.8}
    strokeLinecap="round"
    strokeLinejoin="round"
    aria-hidden="true"
    style={{ flex: "none" }}
  >
    <path d={paths[name]} />
  </svg>
);
