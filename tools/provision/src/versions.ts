/** The versions that Herald is developed and tested with. A test compares the compose files, CI and the documentation with them. */
export const versions = { nats: "2.15.2", mongo: "8.2.6" } as const;

export const images = { nats: `nats:${versions.nats}-alpine`, mongo: `mongo:${versions.mongo}` } as const;
