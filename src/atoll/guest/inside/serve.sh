# Serve the host's commands for as long as the guest lives, many at the same time.
#
# The host writes lines to the port `atoll`: `run N` starts FOLDER/N.sh with its output in
# FOLDER/N.out and N.err, `kill N` ends its whole process group. Each ended command is answered
# by `done N STATUS`. `tell` puts on the console what memory there is and where in the kernel
# each process waits, and is answered by `told`.
#
# Output goes through pipes, because a file that is opened again as /dev/stdout is truncated. A
# daemon may hold a pipe open for ever; so its end is no sign, but a mark that we write into it
# when the command has ended: what stands before it is the command's output.
folder=$1
bb=/run/guest/busybox
mark='\0atoll:end\0'
# Whatever takes the guest's memory, this is not killed for it; commands are (see run).
echo -1000 >/proc/$$/oom_score_adj

# PID 1 must reap orphans, or a daemon that ended would look alive: its wait does, while the
# loop that serves the port is a child.
serve() {
    # The kernel finds the port in its own time, on a busy host after this has started.
    until port=$(port) && [ -c "/dev/$port" ]; do $bb sleep 0.1; done
    exec 3<>"/dev/$port"
    echo ready >&3
    while read -r verb number <&3; do
        case $verb in
        run) run "$number" & ;;
        kill) end "$number" & ;;
        tell) tell & ;;
        esac
    done
}

port() {
    for named in /sys/class/virtio-ports/*; do
        [ -e "$named/name" ] || continue
        read -r name <"$named/name"
        [ "$name" != atoll ] || echo "${named##*/}"
    done
}

run() {
    pipe=/run/guest/$1
    for kind in out err; do
        $bb mkfifo -m 666 "$pipe.$kind"
        $bb cat "$pipe.$kind" >>"$folder/$1.$kind" 3>&- &
    done
    exec 4>"$pipe.out" 5>"$pipe.err"
    $bb rm "$pipe.out" "$pipe.err"
    # The leader of a new session is its process group too; it tells its pid before it starts.
    start="echo \$\$ >$pipe.pid; echo 0 >/proc/\$\$/oom_score_adj; exec $bb sh '$folder/$1.sh'"
    $bb setsid $bb sh -c "$start" \
        </dev/null >&4 2>&5 3>&- 4>&- 5>&- &
    wait $! 2>/dev/null # of one that was killed it would say so on the console
    status=$?
    trap '' PIPE # a cat that found no room on the host has ended, but the host is to be answered
    printf "$mark" >&4
    printf "$mark" >&5
    echo "done $1 $status" >&3
}

end() {
    until [ -s "/run/guest/$1.pid" ]; do $bb sleep 0.1; done
    read -r group <"/run/guest/$1.pid"
    kill -KILL "-$group"
}

# Nothing here needs the host's files, which may be what does not answer.
tell() {
    echo 7 >/proc/sys/kernel/printk
    for what in m w; do echo "$what" >/proc/sysrq-trigger; done
    for process in /proc/[0-9]*; do
        stat=$($bb cat "$process/stat") # not cmdline, which waits for locks of the process
        case ${stat##*) } in
        ?" 0 "* | ?" 2 "*) continue ;; # the kernel's own
        esac
        for thread in "$process"/task/*; do
            echo "${stat%%)*}) thread ${thread##*/}"
            $bb cat "$thread/stack"
        done
    done >/dev/console 2>&1
    echo told >&3
}

serve &
while :; do wait; $bb sleep 1; done
