/**
 * What bases and boot files are made of, as data. The same recipe with the same lock gives the same
 * bytes.
 */

export interface Archive {
  /** Directory of the archive, without a trailing slash. */
  readonly uri: string;
  readonly suites: readonly string[];
  readonly component: string;
  /** On the building machine. */
  readonly keyring: string;
}

export interface Recipe {
  /** Distribution, release and variant: what people call the base. */
  readonly name: string;
  readonly suite: string;
  /** Written to the base's own apt sources; a building machine may fetch from a mirror instead. */
  readonly archives: readonly Archive[];
  readonly packages: readonly string[];
  /** Of the file system: the least that a sandbox's disk can have. */
  readonly sizeBytes: number;
}

const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
const trixie: readonly Archive[] = [
  {
    uri: "http://deb.debian.org/debian",
    suites: ["trixie", "trixie-updates"],
    component: "main",
    keyring,
  },
  {
    uri: "http://deb.debian.org/debian-security",
    suites: ["trixie-security"],
    component: "main",
    keyring,
  },
];

const slim: readonly string[] = [
  ...["?essential", "apt", "init", "systemd", "systemd-sysv", "libpam-systemd", "dbus", "udev"],
  ...[
    "passwd",
    "mount",
    "util-linux",
    "e2fsprogs",
    "kmod",
    "sudo",
    "procps",
    "iproute2",
    "netbase",
    "libnss-myhostname",
  ],
  ...["ca-certificates", "openssh-server", "openssh-client", "git", "python3", "less", "curl"],
];

const debianSlim: Recipe = {
  name: "debian-13-slim",
  suite: "trixie",
  archives: trixie,
  packages: slim,
  sizeBytes: 2 * 1024 ** 3,
};

/** By what `--base` says. */
export const recipes: Readonly<Record<string, Recipe>> = { slim: debianSlim };

/** The kernel of every guest, and what its initramfs is made of: only these packages themselves. */
export const bootRecipe: Omit<Recipe, "sizeBytes"> = {
  name: "boot",
  suite: "trixie",
  archives: trixie,
  packages: ["linux-image-cloud-amd64", "busybox-static"],
};
export const bootPackages: RegExp = /^(linux-image-\d.*-cloud-amd64|busybox-static)$/;
