import type { DockerStarter } from "@herald/provision";
import { freePort, images } from "@herald/provision";

/** Imported only when needed: the library costs every test file a second, and most machines have other sources. */
const testcontainers = () => import("testcontainers");

export const mongoContainer: DockerStarter = {
  what: `testcontainers start ${images.mongo}`,
  start: async (progress) => {
    const { GenericContainer, Wait } = await testcontainers();
    progress(`starting ${images.mongo} in a container`);
    const container = await new GenericContainer(images.mongo)
      .withExposedPorts(27017)
      .withTmpFs({ "/data/db": "rw" })
      .withWaitStrategy(Wait.forLogMessage(/Waiting for connections/))
      .start();
    return {
      url: `mongodb://${container.getHost()}:${container.getMappedPort(27017)}/`,
      stop: async () => {
        await container.stop();
      },
    };
  },
};

/** Uses a fixed port of the host, so that clients find the broker again after a restart. */
export async function natsContainer(config: string) {
  const { GenericContainer, Wait, getContainerRuntimeClient } = await testcontainers();
  const port = await freePort();
  const container = await new GenericContainer(images.nats)
    .withExposedPorts({ container: 4222, host: port })
    .withCopyContentToContainer([{ content: config, target: "/etc/nats/herald.conf" }])
    .withCommand(["-c", "/etc/nats/herald.conf"])
    .withWaitStrategy(Wait.forLogMessage(/Server is ready/))
    .start();
  const client = await getContainerRuntimeClient();
  return { container, engine: client.container.getById(container.getId()), port };
}
