/** Files that are built in: these as their text. */
declare module "*.toml" {
  const text: string;
  export default text;
}
declare module "*.sh" {
  const text: string;
  export default text;
}
declare module "*.txt" {
  const text: string;
  export default text;
}
declare module "*.service" {
  const text: string;
  export default text;
}
/** This one as the path that it can be read from. */
declare module "*/holdfast-run" {
  const path: string;
  export default path;
}
