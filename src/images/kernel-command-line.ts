/**
 * What a guest's kernel and init are told at boot. Never a secret: everything in the guest can read
 * it.
 */

export interface GuestIdentity {
  /** RFC 1123 label. */
  readonly hostname: string;
  /** 32 hex digits. */
  readonly machineId: string;
  /** Slow processors get a guest with fewer units, and a kernel that skips what costs seconds. */
  readonly emulated: boolean;
}

const always: readonly string[] = [
  "console=ttyS0",
  "quiet",
  "loglevel=3",
  // A panic ends the VM at once, and its console tells why.
  "panic=-1",
  "net.ifnames=0",
  "systemd.firstboot=0",
  "systemd.show_status=0",
];

/** Each saves an emulated boot between 0.1 and 0.6 s; no mitigation protects emulated processors. */
const whenEmulated: readonly string[] = [
  "mitigations=off",
  "nokaslr",
  "lsm=capability",
  "audit=0",
  "cryptomgr.notests",
  "nowatchdog",
  "initcall_blacklist=load_system_certificate_list,jent_mod_init,init_encrypted,cec_init,bert_init",
  // Read by our init: masks the units of guest/trimmed-units.txt.
  "holdfast.trim",
];

/** kernel-parameters(7), kernel-command-line(7) of systemd. */
export function kernelCommandLine({ hostname, machineId, emulated }: GuestIdentity): string {
  const identity = [`systemd.hostname=${hostname}`, `systemd.machine_id=${machineId}`];
  return [...always, ...(emulated ? whenEmulated : []), ...identity].join(" ");
}
