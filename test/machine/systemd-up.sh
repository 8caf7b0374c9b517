#!/bin/sh
# The life of an installation under systemd, told in lines that begin with "= ". Run by
# systemd.test.ts in a machine of its own, with the tree as the working directory.
data=/srv/holdfast
holdfast=$data/bin/holdfast
options="--data $data --port 8570"
vms() { systemctl list-units --plain --no-legend 'holdfast-vm@*' | grep -c . || true; }

ip link set lo up
mkdir -p -m 0700 "$data"
ln -s "$PWD/.cache/machine/images" "$data/images"

./scripts/up $options --json
echo "= up $?"
echo "= $(systemctl is-enabled holdfast) $(systemctl is-active holdfast)"

"$holdfast" create demo --size tiny
name=$("$holdfast" exec demo -- uname -n)
echo "= exec $name $?"
echo "= VMs $(vms)"
boot=$("$holdfast" exec demo -- cat /proc/sys/kernel/random/boot_id)

"$holdfast" exec -d demo -- sh -c 'for i in 1 2 3 4 5; do echo $i; sleep 1; done; echo end'
systemctl restart holdfast
output=$("$holdfast" logs -f demo)
echo "= output $(echo $output) $?"

systemctl kill -s KILL holdfast
tries=0
until "$holdfast" ls || [ "$tries" -gt 50 ]; do tries=$((tries + 1)); sleep 0.2; done
echo "= killed and back: $(systemctl is-active holdfast)"

./scripts/up $options --json
echo "= up again $?"
[ "$boot" = "$("$holdfast" exec demo -- cat /proc/sys/kernel/random/boot_id)" ] && echo "= the same VM"

./scripts/down $options
echo "= down $?, $(systemctl is-enabled holdfast) $(systemctl is-active holdfast), VMs $(vms)"
./scripts/down $options --vms
echo "= down --vms $?, VMs $(vms)"
