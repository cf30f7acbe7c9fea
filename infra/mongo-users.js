// Run by mongosh: a user for each service that has a database, with rights to that database alone. Repeatable.
const { env } = process;
await db.auth("herald-admin", env.HERALD_MONGO_PASSWORD_ADMIN);
for (const service of ["registry", "dispatch", "analytics"]) {
  const name = service.toUpperCase();
  const user = `herald-${service}`;
  const settings = {
    pwd: env[`HERALD_MONGO_PASSWORD_${name}`],
    roles: [{ role: "readWrite", db: `${env.HERALD_DATABASE_PREFIX}_${service}` }],
  };
  if (await db.getUser(user)) await db.updateUser(user, settings);
  else await db.createUser({ user, ...settings });
  print(`${user} may read and write ${settings.roles[0].db}`);
}
