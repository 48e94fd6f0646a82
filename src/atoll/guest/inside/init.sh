#!/bin/busybox sh
# The guest's PID 1, out of the initramfs: the host's root read-only with a tmpfs over it, what a
# Linux system expects to be mounted, the writable folders; then inside/serve.sh takes over.
# A fault ends PID 1, the kernel panics, and QEMU ends: the host tells a failed boot so.
set -e
bb=/bin/busybox
$bb mkdir -p /proc /sys /dev /lower /upper /new
$bb mount -t proc proc /proc
$bb mount -t sysfs sysfs /sys
$bb mount -t devtmpfs dev /dev 2>/dev/null || :
while read -r module; do $bb insmod "/modules/$module.ko"; done </modules/order

options=trans=virtio,version=9p2000.L,msize=512000
$bb mount -t 9p -o $options,cache=loose,ro host /lower
$bb mount -t tmpfs -o size=75% upper /upper
$bb mkdir /upper/data /upper/work
$bb mount -t overlay -o lowerdir=/lower,upperdir=/upper/data,workdir=/upper/work overlay /new
number=0
while IFS= read -r folder; do
    $bb mkdir -p "/new$folder"
    $bb mount -t 9p -o $options,cache=none,rw "share$number" "/new$folder"
    number=$((number + 1))
done </boot/shares

$bb mkdir -p /dev/pts /dev/shm
$bb mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
$bb mount -t tmpfs -o mode=1777 shm /dev/shm
$bb ln -sf /proc/self/fd /dev/fd
$bb ln -sf fd/0 /dev/stdin
$bb ln -sf fd/1 /dev/stdout
$bb ln -sf fd/2 /dev/stderr
$bb mount -t cgroup2 cgroup /sys/fs/cgroup
echo "+cpuset +cpu +memory" >/sys/fs/cgroup/cgroup.subtree_control
$bb mount -t tmpfs -o mode=755 run /new/run
$bb mkdir -p -m 1777 /new/run/lock
$bb mkdir -p /new/run/guest
$bb cp /bin/busybox /boot/serve.sh /new/run/guest/
for mounted in proc sys dev; do $bb mount -o move "/$mounted" "/new/$mounted"; done
$bb ifconfig lo 127.0.0.1 netmask 255.0.0.0 up
$bb hostname guest
printf '127.0.0.1 localhost guest\n::1 localhost\n' >/new/etc/hosts
while read -r cpu; do echo 0 >"/new/sys/devices/system/cpu/cpu$cpu/online"; done </boot/offline

IFS= read -r folder </boot/shares
exec $bb switch_root /new /run/guest/busybox sh /run/guest/serve.sh "$folder"
