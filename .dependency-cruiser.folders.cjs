/** A run apart from the other rules: dependency-cruiser checks a folder with all its files, and tests may reach across folders. */
const { options } = require("./.dependency-cruiser.cjs");

module.exports = {
  forbidden: [
    {
      name: "no-circles-of-folders",
      comment: "A circle of folders has no layer: nobody can read one of them alone.",
      severity: "error",
      scope: "folder",
      from: {},
      to: { circular: true },
    },
  ],
  options: { ...options, exclude: { path: "/dist/|/test/|\\.(test|suite)\\.ts$" } },
};
