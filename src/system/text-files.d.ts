/** Files whose text is built in. */
declare module "*.toml" {
  const text: string;
  export default text;
}
