/** The addon by platform; the package ships no types for these paths. */
declare module "better-sqlite3/linux-x64" {
  const Better: unknown;
  export default Better;
}
