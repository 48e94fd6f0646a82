# Serve the host's commands for as long as the guest lives, many at the same time.
#
# The host writes lines to the port `atoll`: `run N` starts FOLDER/N.sh with its output in
# FOLDER/N.out and N.err, `kill N` ends its whole process group. Each ended command is answered
# by `done N STATUS`. Output goes to files, so a daemon that keeps them open blocks nobody.
folder=$1
bb=/run/guest/busybox

# PID 1 must reap orphans, or a daemon that ended would look alive: its wait does, while the
# loop that serves the port is a child.
serve() {
    exec 3<>"/dev/$(port)"
    echo ready >&3
    while read -r verb number <&3; do
        case $verb in
        run) run "$number" & ;;
        kill) end "$number" & ;;
        esac
    done
}

port() {
    for named in /sys/class/virtio-ports/*; do
        read -r name <"$named/name"
        [ "$name" = atoll ] && echo "${named##*/}"
    done
}

run() {
    # The leader of a new session is its process group too; it tells its pid before it starts.
    $bb setsid $bb sh -c "echo \$\$ >/run/guest/$1.pid; exec $bb sh '$folder/$1.sh'" \
        </dev/null >>"$folder/$1.out" 2>>"$folder/$1.err" 3>&- &
    wait $!
    echo "done $1 $?" >&3
}

end() {
    until [ -s "/run/guest/$1.pid" ]; do $bb sleep 0.1; done
    read -r group <"/run/guest/$1.pid"
    kill -KILL "-$group"
}

serve &
while :; do wait; $bb sleep 1; done
