/** Which build this is. The build script puts the values in; from source they are the package's. */
import packageJson from "../../package.json";

declare const HOLDFAST_COMMIT: string | undefined;

export const build = {
  version: packageJson.version,
  commit: typeof HOLDFAST_COMMIT === "string" ? HOLDFAST_COMMIT : "source",
} as const;
